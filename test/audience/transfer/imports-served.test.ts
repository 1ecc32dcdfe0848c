/** Import and export of contacts over HTTP on the running appliance. */
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { openTestAppliance } from '../../support/program/appliance.js'
import { until } from '../../support/until.js'

const BASE = '/api/v1/contacts'
const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'

interface Sending {
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
}

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const { key, baseUrl } = postroad
  const authorization = { Authorization: `Bearer ${key}` }
  const send = async (body: string | Uint8Array | FormData, { query = {}, headers = {} }: Sending = {}) => {
    const type = body instanceof FormData ? {} : { 'Content-Type': 'text/csv' }
    const response = await fetch(`${baseUrl}${BASE}/import?${new URLSearchParams(query).toString()}`, {
      method: 'POST',
      headers: { ...authorization, ...type, ...headers },
      body,
    })
    return { status: response.status, body: (await response.json()) as Answer }
  }
  const show = (id: string) => postroad.get(`${BASE}/imports/${id}`, { key })
  return {
    ...postroad,
    send,
    show,
    at: (path: string, other = key) => postroad.get(`${BASE}${path}`, { key: other }),
    cancel: (id: string) => postroad.post(`${BASE}/imports/${id}/cancel`, {}, { key }),
    rows: (): Record<string, number> => postroad.rowCounts(),
    /** The import once it is over. */
    imported: async (body: string | Uint8Array | FormData, sending: Sending = {}) => {
      const { status, body: accepted } = await send(body, sending)
      t.equal(status, 202, JSON.stringify(accepted))
      return until('the import to end', async () => {
        const { data } = (await show(accepted.data.import_id)).body
        return data.completed_at === null ? undefined : data
      })
    },
    download: async (path: string) => {
      const response = await fetch(`${baseUrl}${BASE}${path}`, { headers: authorization })
      return { status: response.status, headers: response.headers, text: await response.text() }
    },
    contacts: async (query = '') => (await postroad.get(`${BASE}${query}`, { key })).body.data,
    make: async (path: string, body: object) =>
      (await postroad.post(`/api/v1${path}`, body, { key })).body.data,
  }
}

interface Answer {
  readonly data: { readonly import_id: string }
  readonly error: { readonly code: string; readonly path: string; readonly message: string }
}

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// answers: POST /contacts/import: not_found
// operations: GET /contacts/imports/{id}
t.test('a CSV file creates contacts, in a list and with tags, and reports each rejected row', async t => {
  const { imported, make, contacts, show, send } = await open(t)
  const list = await make('/lists', { name: 'News' })
  const done = await imported(
    'E-Mail,Vorname,LAST NAME,Plan,Opt-in,Tags\r\n' +
      'Ann@Example.com,Ann,"Lee, ""the"" one",pro,,"vip; new"\r\n' +
      'bob@example.com,Bob,,,no,\r\n' +
      'nonsense,x,y,z,yes,\r\n' +
      'ANN@example.com,x,,,,\r\n' +
      ',,,,,\r\n' +
      'max@example.com,,,,perhaps,\r\n' +
      'moritz@example.com,,,,,,more\r\n' +
      ',Nobody,,,,\r\n',
    { query: { list_id: list.id, tags: 'Spring', file_name: 'people.csv' } },
  )
  t.match(done, {
    status: 'completed',
    file_name: 'people.csv',
    list_id: list.id,
    tags: ['Spring'],
    ...{ progress: 1, rows: 7, created: 2, updated: 0, unchanged: 0, rejected: 5 },
    columns: [
      { name: 'E-Mail', field: 'email' },
      { name: 'Vorname', field: 'first_name' },
      { name: 'LAST NAME', field: 'last_name' },
      { name: 'Plan', field: 'attributes.Plan' },
      { name: 'Opt-in', field: 'subscribed' },
      { name: 'Tags', field: 'tags' },
    ],
    rejected_rows: [
      { line: 4, code: 'invalid_address', reason: 'the address has no @', value: 'nonsense' },
      {
        line: 5,
        code: 'duplicate_address',
        reason: 'duplicate of the address in line 2',
        value: 'ANN@example.com',
      },
      { line: 7, code: 'not_yes_or_no', reason: 'subscribed is "perhaps", must be yes or no' },
      { line: 8, code: 'too_many_cells', reason: 'the row has 7 cells, but the header has 6' },
      { line: 9, code: 'no_address', reason: 'the row has no address', value: null },
    ],
  })
  const [bob, ann] = await contacts()
  t.match(bob, { email: 'bob@example.com', subscribed: false, attributes: {} })
  t.match(ann, { email: 'ann@example.com', last_name: 'Lee, "the" one', attributes: { Plan: 'pro' } })
  t.match(await make(`/lists/${list.id}/members`, { contact_ids: [ann.id, bob.id] }), {
    added: 0,
    skipped: 2,
  })
  t.match((await contacts(`/${ann.id}`)).tags, [{ name: 'Spring' }, { name: 'new' }, { name: 'vip' }])
  t.match((await show(MADE_UP)).body, { error: { code: 'not_found' } })
  t.match(await send('email\nx@x.example\n', { query: { list_id: MADE_UP } }), {
    status: 404,
    body: { error: { code: 'not_found', path: 'list_id' } },
  })
})

t.test('a dry run tells what an import would do, and changes nothing', async t => {
  const { imported, make, contacts, rows, send, at } = await open(t)
  const list = await make('/lists', { name: 'News' })
  await make('/contacts', { email: 'ann@example.com', first_name: 'Ann' })
  await make('/contacts', { email: 'eve@example.com', first_name: 'Eve' })
  const file =
    'Email,First name,Tags\nann@example.com,Anna,vip\nbob@example.com,Bob,vip\neve@example.com,Eve,\nnonsense,x,\n'
  const before = rows()
  const tried = await imported(file, { query: { dry_run: 'true' } })
  const counts = { rows: 4, created: 1, updated: 1, unchanged: 1, rejected: 1 }
  t.match(tried, {
    status: 'completed',
    dry_run: true,
    ...counts,
    rejected_rows: [{ line: 5, reason: 'the address has no @' }],
  })
  const after = rows()
  for (const table of [
    'contacts',
    'tags',
    'contact_tags',
    'list_members',
    'events',
    'activities',
    'suppressions',
  ])
    t.equal(after[table], before[table], table)
  t.match(await contacts(), [{ first_name: 'Eve' }, { first_name: 'Ann' }])
  t.match((await at('/imports')).body.data, [{ id: tried.id, dry_run: true }])
  t.match(await imported(file), { dry_run: false, ...counts }, 'the import does just that')
  t.equal((await contacts()).length, 3)
  t.match(await imported(file, { query: { dry_run: 'true', list_id: list.id } }), {
    updated: 3,
    unchanged: 0,
  })
  const form = new FormData()
  form.set('dry_run', 'true')
  form.set('file', new Blob(['email\nnew@example.com\n'], { type: 'text/csv' }), 'new.csv')
  t.match(await imported(form), { dry_run: true, created: 1, file_name: 'new.csv' })
  form.set('dry_run', 'perhaps')
  t.match(await send(form), { status: 400, body: { error: { path: 'dry_run' } } })
  t.match(await send(file, { query: { dry_run: 'perhaps' } }), {
    status: 400,
    body: { error: { path: 'dry_run' } },
  })
  t.equal((await contacts()).length, 3)
})

t.test('an existing contact changes only in the columns of the file, and no change is no event', async t => {
  const { imported, make, contacts, rows } = await open(t)
  await make('/contacts', {
    email: 'ann@x.example',
    first_name: 'Ann',
    attributes: { plan: 'pro', age: 5 },
  })
  await make('/contacts', { email: 'bob@x.example', attributes: { plan: 'free' } })
  const { events: before = 0 } = rows()
  t.match(await imported('email,first name,plan,age\nann@x.example,,pro,5\nbob@x.example,Bob,team,\n'), {
    ...{ created: 0, updated: 1, unchanged: 1, rejected: 0 },
  })
  const [bob, ann] = await contacts()
  t.match(bob, { first_name: 'Bob', attributes: { plan: 'team' } })
  t.match(ann, { first_name: 'Ann', attributes: { plan: 'pro', age: 5 } })
  t.equal(rows()['events'], before + 1)
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
t.test('a file cannot resubscribe contacts who opted out, and can unsubscribe others', async t => {
  const { imported, make, contacts } = await open(t)
  await make('/contacts', { email: 'gone@x.example', subscribed: false })
  await make('/contacts', { email: 'here@x.example' })
  await make('/suppressions', { email: 'never@x.example' })
  await imported(
    'email,subscribed\ngone@x.example,yes\nnever@x.example,true\nhere@x.example,unsubscribed\nnew@x.example,1\n',
  )
  const subscribed = Object.fromEntries(
    (await contacts()).map((one: { email: string; subscribed: boolean }) => [one.email, one.subscribed]),
  )
  t.same(subscribed, {
    'gone@x.example': false,
    'here@x.example': false,
    'never@x.example': false,
    'new@x.example': true,
  })
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
t.test(
  'a file is read in the charset that it is in, with commas, semicolons or tabs, as a form, or folded',
  async t => {
    const { imported, contacts } = await open(t)
    const utf16 = Buffer.concat([
      Buffer.from([0xff, 0xfe]),
      Buffer.from('Mail\tname\nu16@x.example\tZoë\n', 'utf16le'),
    ])
    t.match(await imported(utf16), { charset: 'utf-16le', created: 1 })
    t.match(await imported(Buffer.from('email;name\nw@x.example;M\xfcller\n', 'latin1')), {
      charset: 'windows-1252',
    })
    t.match(await imported('\ufeffemail,name\nbom@x.example,Müller\n'), { charset: 'utf-8', rejected: 0 })
    const cyrillic = Buffer.from([...Buffer.from('email,name\nc@x.example,'), 0xc0, 0xed, 0xed, 0xe0])
    t.match(await imported(cyrillic, { headers: { 'Content-Type': 'text/csv; charset=windows-1251' } }), {
      created: 1,
    })
    t.match(await imported('alone@x.example\nandmore@x.example\n'), { rows: 2, created: 2 })
    t.match(
      await imported(gzipSync('email,name\nz@x.example,Zip\n'), { headers: { 'Content-Encoding': 'gzip' } }),
      {
        created: 1,
      },
    )
    const form = new FormData()
    form.append(
      'file',
      new Blob(['Adresse,Note,name\nf@x.example,secret,Form\n'], { type: 'text/csv' }),
      'form.csv',
    )
    form.append('mapping', '{"Adresse": "email", "Note": null}')
    t.match(await imported(form), { file_name: 'form.csv', created: 1, columns: [{}, { field: null }, {}] })
    const names = Object.fromEntries(
      (await contacts()).map(({ email, attributes }: { email: string; attributes: { name?: string } }) => [
        email.split('@')[0],
        attributes.name,
      ]),
    )
    t.same(names, {
      ...{ u16: 'Zoë', w: 'Müller', bom: 'Müller', c: 'Анна', z: 'Zip', f: 'Form' },
      ...{ alone: undefined, andmore: undefined },
    })
  },
)

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// answers: POST /contacts/import: conflict, unsupported_media_type
t.test('a file that cannot be meant is refused before anything is imported', async t => {
  const { send, imported, contacts, at, make } = await open(t)
  const mapping = (text: string) => ({ query: { mapping: text } })
  for (const [body, sending, path, message] of [
    ['', {}, 'file', /is empty/],
    ['Name,City\nx,y\n', {}, 'file', /the first row has no column for the address .* "Name", "City"/],
    ['email,E-Mail\na@x.example,b@x.example\n', {}, 'file', /"email" and "E-Mail" both map to email/],
    ['email\na@x.example\n', mapping('{"Mail":"email"}'), 'mapping', /"Mail", which is not in the file/],
    ['email\na@x.example\n', mapping('{"email":"id"}'), 'mapping', /must be one of email, first_name/],
    ['email\na@x.example\n', mapping('[1]'), 'mapping', /JSON object/],
    ['email\na@x.example\n', { query: { charset: 'klingon' } }, 'charset', /unknown charset klingon/],
    ['email\na@x.example\n', { query: { tags: 'x'.repeat(101) } }, 'tags', /longer than 100/],
    [`email,${'x'.repeat(101)}\na@x.example,1\n`, {}, 'attributes', /1 to 100 characters/],
    [gzipSync('email\n').subarray(0, 12), { headers: { 'Content-Encoding': 'gzip' } }, 'body', /gzip/],
  ] as const) {
    const answer = await send(body, sending)
    t.match(
      answer,
      { status: 400, body: { error: { code: 'validation_error', path, message } } },
      String(message),
    )
  }
  const unknown = new FormData()
  unknown.append('other', 'x')
  t.match(await send(unknown), { status: 400, body: { error: { path: 'other' } } })
  t.match(await send(new FormData()), { status: 400 })
  const rules = { match: 'all', rules: [] }
  const dynamic = await make('/lists', { name: 'Dynamic', type: 'dynamic', conditions: rules })
  t.match(await send('email\na@x.example\n', { query: { list_id: dynamic.id } }), {
    status: 409,
    body: { error: { code: 'conflict', path: 'list_id' } },
  })
  t.match(await send('{}', { headers: { 'Content-Type': 'application/json' } }), {
    status: 415,
    body: { error: { code: 'unsupported_media_type', path: 'Content-Type' } },
  })
  t.match((await at('/imports')).body, { data: [], pagination: { total: 0 } })
  t.match(await imported('email,a\n"open@x.example,1\n'), {
    status: 'failed',
    error: 'line 2: a quote is not closed',
  })
  t.same(await contacts(), [])
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// answers: POST /contacts/import: request_timeout
t.test('a check shows what each column was recognized as, and options change it', async t => {
  const { imported, send, contacts } = await open(t)
  const file = 'email,Spent,Born,Name of dog\na@x.example,"1.234,50 €",3/1/24,Rex\n'
  const text = { decimal: null, date_format: null, ambiguous: null, almost: null, examples: [] }
  const tried = await imported(file, { query: { dry_run: 'true' } })
  t.match(tried.columns, [
    { name: 'email', field: 'email', type: null, ...text },
    {
      ...text,
      ...{ name: 'Spent', field: 'attributes.Spent', type: 'number', decimal: 'comma' },
      examples: [{ cell: '1.234,50 €', value: '1234.5' }],
    },
    {
      ...text,
      name: 'Born',
      type: 'text',
      ambiguous: 'date_format',
      examples: [{ cell: '3/1/24', value: '3/1/24' }],
    },
    { ...text, name: 'Name of dog', type: 'text' },
  ])
  await imported(file, { query: { date_format: 'DMY', types: '{"Spent":"text"}' } })
  t.match(await contacts(), [
    { attributes: { Spent: '1.234,50 €', Born: '2024-01-03', 'Name of dog': 'Rex' } },
  ])
  const refused: [Record<string, string>, string][] = [
    [{ types: '["number"]' }, 'types'],
    [{ types: '{"Spent":5}' }, 'types'],
    [{ types: '{"email":"date"}' }, 'types'],
    [{ decimal: ',' }, 'decimal'],
    [{ date_format: 'YYYY-MM-DD' }, 'date_format'],
  ]
  for (const [query, path] of refused)
    t.match(await send(file, { query }), { status: 400, body: { error: { path } } })
  const form = new FormData()
  form.set('file', new Blob([file], { type: 'text/csv' }), 'people.csv')
  form.set('decimal', 'semicolon')
  t.match(await send(form), { status: 400, body: { error: { path: 'decimal' } } })
})

t.test('a file that does not come on is not waited for, and nothing of it is kept', async t => {
  const { baseUrl, key, clock, at, rows } = await open(t)
  const stalled: RequestInit = {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'text/csv' },
    body: new ReadableStream({ start: controller => controller.enqueue(Buffer.from('email\n')) }),
    duplex: 'half',
  }
  const asked = fetch(`${baseUrl}${BASE}/import`, stalled)
  await until('it to be received', () => rows()['contact_imports'] === 1)
  await clock.advance(61_000)
  const answer = await asked
  t.match([answer.status, await answer.json()], [408, { error: { code: 'request_timeout' } }])
  t.same((await at('/imports')).body.data, [])
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// answers: POST /contacts/imports/{id}/cancel: conflict
t.test('an import is cancelled while it waits or works, and what was done stays', async t => {
  const { send, cancel, show, imported } = await open(t)
  const rows = Array.from({ length: 20_000 }, (_, at) => `c${at}@x.example`).join('\n')
  const { body } = await send(`email\n${rows}\n`)
  t.match(await cancel(body.data.import_id), { status: 200, body: { data: { status: 'cancelled' } } })
  t.match(await cancel(body.data.import_id), { status: 409, body: { error: { code: 'conflict' } } })
  t.match(await cancel(MADE_UP), { status: 404, body: { error: { code: 'not_found' } } })
  t.match(await imported('email\nafter@x.example\n'), { created: 1 })
  t.match((await show(body.data.import_id)).body.data, { status: 'cancelled' })
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// operations: GET /contacts/imports/{id}/rejected
t.test('rejected rows come back as a file, which is imported again once corrected', async t => {
  const { imported, download, contacts } = await open(t)
  const { id } = await imported('email,name\nann,=Ann\nbob@x.example,Bob\n')
  const { headers, text } = await download(`/imports/${id}/rejected`)
  t.match(headers.get('content-type'), 'text/csv')
  t.equal(text, "email,name,rejected_line,rejected_reason\nann,'=Ann,2,the address has no @\n")
  t.match(await imported(text.replace('ann,', 'ann@x.example,')), { created: 1, rejected: 0 })
  t.match(await contacts(), [{ email: 'ann@x.example', attributes: { name: '=Ann' } }, {}])
  t.equal((await download(`/imports/${MADE_UP}/rejected`)).status, 404)
})

// proves: decisions: Contacts > PUT /contacts {email } (additive)
t.test(
  'an export is what an import takes: coming back it changes nothing, and elsewhere it makes the same',
  async t => {
    const here = await open(t)
    const list = await here.make('/lists', { name: 'News' })
    await here.make('/contacts', {
      email: 'ann@x.example',
      first_name: '=cmd|x',
      last_name: 'Lee,\n"the" one',
      attributes: {
        plan: 'pro',
        age: 5,
        active: true,
        nested: { a: [1] },
        email: 'x',
        'Favourite colour': 'red',
      },
      list_id: list.id,
    })
    await here.make('/contacts', {
      email: 'bob@x.example',
      subscribed: false,
      attributes: { plan: 'frei für alle' },
    })
    const { status, headers, text } = await here.download('/export')
    t.equal(status, 200)
    t.equal(headers.get('content-disposition'), 'attachment; filename="contacts.csv"')
    t.match(text, /^id,email,first_name,last_name,subscribed,bounced,lists,tags,created_at,updated_at,/)
    t.match(text, ',ann@x.example,\'=cmd|x,"Lee,\n""the"" one",true,false,News,')
    t.match(await here.imported(text), { created: 0, updated: 0, unchanged: 2, rejected: 0 })
    const there = await open(t)
    t.match(await there.imported(text), { created: 2, rejected: 0 })
    const [bob, ann] = await there.contacts()
    t.match(bob, { email: 'bob@x.example', subscribed: false, attributes: { plan: 'frei für alle' } })
    t.match(ann, {
      first_name: '=cmd|x',
      last_name: 'Lee,\n"the" one',
      attributes: {
        plan: 'pro',
        age: 5,
        active: true,
        nested: { a: [1] },
        email: 'x',
        'Favourite colour': 'red',
      },
    })
  },
)

// proves: decisions: Contacts > PUT /contacts {email } (additive)
// answers: GET /contacts/export: not_found
t.test(
  'an export is of all contacts, or of those that a filter, list, segment or tag leaves, oldest first',
  async t => {
    const { make, download, imported } = await open(t)
    const list = await make('/lists', { name: 'News' })
    const rules = [{ field: 'plan', operator: 'equals', value: 'pro' }]
    const segment = await make('/segments', { name: 'Pro', conditions: { match: 'all', rules } })
    const dynamic = await make('/lists', {
      name: 'Pros',
      type: 'dynamic',
      conditions: { match: 'all', rules },
    })
    await imported(
      'email,plan,tags,subscribed\na@x.example,pro,vip,yes\nb@x.example,free,,no\nc@x.example,pro,,yes\n',
    )
    await imported('email\nc@x.example\n', { query: { list_id: list.id } })
    const emails = async (query: string) =>
      (await download(`/export${query}`)).text
        .split('\n')
        .slice(1, -1)
        .map(line => line.split(',')[1]?.[0])
        .join('')
    t.equal(await emails(''), 'abc')
    t.equal(await emails('?subscribed=false'), 'b')
    t.equal(await emails('?search=c%40'), 'c')
    t.equal(await emails(`?list_id=${list.id}`), 'c')
    t.equal(await emails(`?segment_id=${segment.id}`), 'ac')
    t.equal(await emails(`?list_id=${dynamic.id}&subscribed=true`), 'ac')
    const { text } = await download(`/export?list_id=${MADE_UP}`)
    t.match(JSON.parse(text), { error: { code: 'not_found', path: 'list_id' } })
    t.match(JSON.parse((await download('/export?bounced=x')).text), { error: { path: 'bounced' } })
  },
)

t.test('contacts exported with a sandbox key say that they are of the sandbox', async t => {
  const { at, ...postroad } = await open(t)
  const key = await postroad.makeKey('--sandbox')
  await postroad.post('/api/v1/contacts', { email: 'a@x.example' }, { key })
  const { body } = await at('/export?format=json', key)
  t.match(body, [{ email: 'a@x.example', is_sandbox: true }])
})

t.test('the imports of a workspace are listed, newest first, and are nobody else’s', async t => {
  const { imported, at, ...postroad } = await open(t)
  const first = await imported('email\na@x.example\n')
  const second = await imported('email\nb@x.example\n')
  t.match((await at('/imports')).body, {
    data: [{ id: second.id }, { id: first.id }],
    pagination: { total: 2 },
  })
  const sandbox = await postroad.makeKey('--sandbox')
  t.equal((await at(`/imports/${first.id}`, sandbox)).status, 404)
  t.match((await at('/imports', sandbox)).body, { data: [] })
})

t.test('a file that suppresses requires the permission, and an unknown preset is an error', async t => {
  const { send, imported, ...postroad } = await open(t)
  const listmonk =
    'uuid,email,name,attributes,status,created_at,updated_at\n1,b@x.example,Bob,{},blocklisted,,\n'
  const query = { query: { preset: 'klingon' } }
  t.match(await send('email\na@x.example\n', query), { status: 400, body: { error: { path: 'preset' } } })
  const key = await postroad.makeKey('--permissions', 'contacts:write')
  const refused = await send(listmonk, { headers: { Authorization: `Bearer ${key}` } })
  t.match(refused, {
    status: 403,
    body: { error: { code: 'forbidden', message: /preset listmonk.*suppressions:write/ } },
  })
  t.match(await imported(listmonk), { preset: 'listmonk', created: 1, rejected: 0 })
  const { data } = (await postroad.get('/api/v1/suppressions', { key: postroad.key })).body
  t.match(data, [{ email: 'b@x.example', reason: 'manual', scope: 'all' }])
})
