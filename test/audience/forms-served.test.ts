/** Forms over HTTP on the running appliance: their routes, their pages, and the mail that asks to confirm. */
import { simpleParser } from 'mailparser'
import t, { type Test } from 'tap'
import { makeConfirmationToken, type Confirmation } from '../../src/mail/links/subscriber-link.js'
import { visit, type Visiting } from '../support/api/pages.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { linkKeysOf } from '../support/program/links.js'
import { until } from '../support/until.js'

const MADE_UP = '0192f000-0000-7000-8000-00000000abcd'
const NAME = { name: 'first_name', label: 'First name' }

async function open(t: Test) {
  const postroad = await openTestAppliance(t, { toml: 'public_url = "https://pages.shop.example/mail"' })
  const { workspaceId, baseUrl } = postroad
  const set = (...settings: string[]) => postroad.run('workspace', 'set', workspaceId, ...settings)
  await set('company_name=Corner Shop', 'default_from_email=shop@shop.example')
  const key = await postroad.makeKey()
  const at = (path: string) => `/api/v1${path}`
  const get = (path: string) => postroad.get(at(path), { key })
  const post = (path: string, body: object) => postroad.post(at(path), body, { key })
  const captured = async (): Promise<{ id: number; recipient: string }[]> =>
    (await postroad.get('/capture?limit=100')).body.data
  return {
    ...postroad,
    set,
    get,
    post,
    patch: (path: string, body: object) => postroad.patch(at(path), body, { key }),
    remove: (path: string) => postroad.delete(at(path), { key }),
    make: async (path: string, body: object) => String((await post(path, body)).body.data.id),
    /** `/f/<id>` of a new form. */
    form: async (body: object) => `/f/${String((await post('/forms', body)).body.data.id)}`,
    see: (path: string, visiting?: Visiting) => visit(baseUrl + path, visiting),
    contact: async (email: string) => {
      const [found] = (await get(`/contacts?search=${encodeURIComponent(email)}`)).body.data
      return found && (await get(`/contacts/${found.id}`)).body.data
    },
    captured,
    /** The path of the link in the newest mail to an address, once that many have arrived. */
    linkTo: async (email: string, count = 1) => {
      const [newest] = await until(`${count} mails to ${email}`, async () => {
        const mails = (await captured()).filter(({ recipient }) => recipient === email)
        return mails.length >= count ? mails.sort((a, b) => b.id - a.id) : undefined
      })
      const mail = await simpleParser(
        Buffer.from((await postroad.get(`/capture/${newest?.id ?? 0}`)).body.data.raw_base64, 'base64'),
      )
      const [, path = ''] = /https:\/\/pages\.shop\.example\/mail(\/s\/[\w.-]+)/.exec(mail.text ?? '') ?? []
      t.ok(String(mail.html).includes(path), 'both parts have the link')
      return { path, mail }
    },
    /** A link that was made at some other time. */
    linkAs: async (confirmation: Omit<Confirmation, 'workspaceId'>) =>
      `/s/${makeConfirmationToken(await linkKeysOf(postroad), { workspaceId, ...confirmation })}`,
    optInId: (): string => postroad.sql<{ id: string }>('select id from opt_ins')[0]?.id ?? '',
    events: (): { kind: string; payload: Record<string, unknown> }[] =>
      postroad
        .sql<{ kind: string; payload: string }>('select kind, payload from events order by seq')
        .filter(({ kind }) => !kind.startsWith('email.'))
        .map(({ kind, payload }) => ({ kind, payload: JSON.parse(payload) as Record<string, unknown> })),
  }
}

// proves: decisions: Deliverability > Forms (additive the source of
// answers: PATCH /forms/{id}: not_found
// operations: GET /forms/{id}
t.test('a form is made, shown, changed and deleted', async t => {
  const { get, post, patch, remove, make, see } = await open(t)
  const list = await make('/lists', { name: 'News' })
  const fields = [NAME, { name: 'attributes.size', label: 'Size', type: 'select', options: ['S', 'L'] }]
  const made = await post('/forms', { name: ' Footer ', list_ids: [list, list.toUpperCase()], fields })
  const { id } = made.body.data
  t.match(made, {
    status: 201,
    body: {
      data: {
        name: 'Footer',
        title: null,
        list_ids: [list],
        fields: [
          { name: 'first_name', type: 'text', required: false, options: [] },
          { name: 'size', type: 'select', options: ['S', 'L'] },
        ],
        redirect_url: null,
        double_opt_in: false,
        url: `https://pages.shop.example/mail/f/${String(id)}`,
      },
    },
  })
  t.equal(made.body.data.list_ids.length, 1)
  t.match(await patch(`/forms/${id}`, { title: 'News', redirect_url: 'https://shop.example/thanks' }), {
    status: 200,
    body: { data: { name: 'Footer', title: 'News', redirect_url: 'https://shop.example/thanks' } },
  })
  t.match(await patch(`/forms/${id}`, { title: null }), { body: { data: { title: null, list_ids: [list] } } })
  t.match(await get(`/forms/${id}`), { status: 200, body: { data: { id, name: 'Footer' } } })
  t.match((await get('/forms')).body, { data: [{ id }], pagination: { total: 1 } })
  t.match(await remove(`/forms/${id}`), { status: 200, body: { data: { success: true } } })
  for (const gone of [
    get(`/forms/${id}`),
    remove(`/forms/${id}`),
    patch(`/forms/${id}`, {}),
    get('/forms/x'),
  ])
    t.match(await gone, { status: 404, body: { error: { code: 'not_found' } } })
  t.match(await see(`/f/${id}`), { status: 410, text: /This form is closed/ })
  t.match(await see(`/f/${id}`, { form: { email: 'a@b.example' } }), { status: 410 })
  t.equal((await see(`/f/${MADE_UP}`)).status, 404)
})

// proves: decisions: Deliverability > Forms (additive the source of
// answers: PATCH /forms/{id}: conflict; POST /forms: not_found, conflict
t.test('what cannot be a form is refused by name', async t => {
  const { post, patch, make } = await open(t)
  const dynamic = await make('/lists', {
    name: 'Old',
    type: 'dynamic',
    conditions: { match: 'all', rules: [{ field: 'email', operator: 'is_set' }] },
  })
  const form = (body: object) => post('/forms', { name: 'x', ...body })
  t.match(await form({ list_ids: [MADE_UP] }), { status: 404, body: { error: { path: 'list_ids.0' } } })
  t.match(await form({ list_ids: [dynamic] }), { status: 409, body: { error: { code: 'conflict' } } })
  const made = await make('/forms', { name: 'x' })
  t.match(await patch(`/forms/${made}`, { list_ids: [dynamic] }), {
    status: 409,
    body: { error: { code: 'conflict' } },
  })
  for (const [body, path] of [
    [{ name: ' ' }, 'name'],
    [{ redirect_url: 'javascript:alert(1)' }, 'redirect_url'],
    [{ redirect_url: '/thanks' }, 'redirect_url'],
    [{ redirect_url: "https://shop.example;script-src'unsafe-inline'/" }, 'redirect_url'],
    [{ redirect_url: 'https://a,b.example/' }, 'redirect_url'],
    [{ redirect_url: 'https://user:pass@shop.example/' }, 'redirect_url'],
    [{ fields: [{ name: 'email', label: 'x' }] }, 'fields.0.name'],
    [{ fields: [NAME, NAME] }, 'fields.1.name'],
    [{ fields: [{ name: 'a', label: ' ' }] }, 'fields.0.label'],
    [{ fields: [{ name: 'a', label: 'x', type: 'select' }] }, 'fields.0.options'],
    [{ fields: [{ name: 'a', label: 'x', options: ['y'] }] }, 'fields.0.options'],
    [{ fields: [{ name: 'last_name', label: 'x', type: 'number' }] }, 'fields.0.type'],
    [{ fields: [{ name: '__proto__', label: 'x' }] }, 'fields.0.name'],
    [{ fields: Array.from({ length: 21 }, (_, n) => ({ name: `a${n}`, label: 'x' })) }, 'fields'],
    [{ list_ids: Array.from({ length: 21 }, () => MADE_UP) }, 'list_ids'],
  ] as const)
    t.match(await form(body), { status: 400, body: { error: { code: 'validation_error', path } } }, path)
})

// proves: decisions: Deliverability > Forms (additive the source of
t.test(
  'the page of a form asks with labels, escaped, and leads back to nowhere but its own address',
  async t => {
    const { form, see } = await open(t)
    const path = await form({
      name: 'x',
      title: 'News & <more>',
      fields: [{ ...NAME, label: '"First" <name>', required: true }],
      redirect_url: 'https://shop.example/thanks?a=1',
    })
    const page = await see(path, { headers: { 'Accept-Language': 'es' } })
    t.match(page, { status: 200, text: /<h1>News &amp; &lt;more&gt;<\/h1>/ })
    t.match(page.text, /<label for="f-email">Dirección de correo <small>\(obligatorio\)/)
    t.match(page.text, /<label for="f-first_name">&quot;First&quot; &lt;name&gt;/)
    t.match(page.headers['content-security-policy'], "form-action 'self' https://shop.example;")
    t.match(
      await see(path, {
        form: { email: 'ann@mail.example', first_name: 'Ann', redirect_url: 'https://evil.example' },
      }),
      {
        status: 303,
        headers: { location: 'https://shop.example/thanks?a=1' },
      },
    )
  },
)

// proves: decisions: Deliverability > Forms (additive the source of
t.test('a submitted form creates a contact, adds it to the lists, and is reported once', async t => {
  const { form, see, make, contact, events } = await open(t)
  const list = await make('/lists', { name: 'News' })
  const path = await form({
    name: 'x',
    list_ids: [list],
    fields: [
      NAME,
      { name: 'company', label: 'Company' },
      { name: 'age', label: 'Age', type: 'number' },
      { name: 'born', label: 'Born', type: 'date' },
      { name: 'size', label: 'Size', type: 'select', options: ['S', 'L'] },
      { name: 'terms', label: 'Terms', type: 'checkbox', required: true },
    ],
  })
  const filled = {
    email: ' Ann@Mail.example ',
    first_name: 'Ann',
    company: 'ACME',
    age: '41,5',
    born: '1984-02-29',
    size: 'L',
    terms: 'true',
    stray: 'x',
  }
  t.match(await see(path, { form: filled }), { status: 200, text: /<h1>Thank you/ })
  t.match(await contact('ann@mail.example'), {
    first_name: 'Ann',
    attributes: { company: 'ACME', age: 41.5, born: '1984-02-29', size: 'L', terms: true },
    subscribed: true,
    lists: [{ id: list }],
  })
  t.match(events(), [
    { kind: 'contact.created', payload: { email: 'ann@mail.example' } },
    { kind: 'list.member_added', payload: { list_id: list, source: 'form' } },
    { kind: 'form.submitted', payload: { form_id: path.slice(3), fields: { company: 'ACME', age: 41.5 } } },
  ])
  await see(path, { form: { email: 'ann@mail.example', first_name: 'Evil', company: 'Other', terms: 'on' } })
  t.match(await contact('ann@mail.example'), { first_name: 'Ann', attributes: { company: 'ACME' } })
  t.same(
    events()
      .slice(3)
      .map(({ kind }) => kind),
    ['form.submitted'],
    'an unconfirmed submission overwrites nothing',
  )
})

t.test('what was filled in badly comes back with its faults, each beside its field', async t => {
  const { form, see, contact } = await open(t)
  const path = await form({
    name: 'x',
    fields: [
      { ...NAME, required: true },
      { name: 'age', label: 'Age', type: 'number' },
      { name: 'born', label: 'Born', type: 'date' },
      { name: 'size', label: 'Size', type: 'select', options: ['S'] },
      { name: 'note', label: 'Note' },
    ],
  })
  const bad = { email: 'ann@', age: 'x', born: '2025-02-30', size: 'M', note: 'x'.repeat(501) }
  const page = await see(path, { form: bad })
  t.match(page, { status: 400, text: /role="alert"/ })
  for (const text of [
    'Please enter a valid email address.',
    'First name is required.',
    'Age must be a number.',
    'Born must be a date, such as 2026-05-31.',
    'Please choose one of the options for Size.',
    'Note is too long.',
  ])
    t.equal(page.text.split(text).length, 3, `${text}: at the top and beside the field`)
  t.match(page.text, /value="ann@"/)
  t.match(page.text, /id="f-age"[^>]*aria-invalid="true" aria-describedby="f-age-fault"/)
  t.equal((await see(path, { form: {} })).status, 400)
  t.match(await see(path, { json: { email: 'a@b.example' } }), {
    status: 400,
    text: '{"error":{"code":"validation_error","message":"First name is required.","path":"first_name"}}',
  })
  t.equal(await contact('a@b.example'), undefined)
})

// proves: decisions: Contacts > List type static (default) or
t.test('with double opt-in nothing happens before the button behind the link is pressed', async t => {
  const { form, see, make, contact, events, linkTo } = await open(t)
  const list = await make('/lists', { name: 'News', double_opt_in: true })
  const path = await form({ name: 'x', list_ids: [list], fields: [NAME] })
  const sent = await see(path, {
    form: { email: 'Ann@mail.example', first_name: 'Ann' },
    headers: { 'Accept-Language': 'de' },
  })
  t.match(sent, { status: 200, text: /<h1>Noch ein Schritt/ })
  t.equal(await contact('ann@mail.example'), undefined)
  t.same(events(), [])
  const { path: link, mail } = await linkTo('ann@mail.example')
  t.match(mail, { subject: 'Bitte bestätigen Sie Ihre Anmeldung: Corner Shop' })
  t.notMatch(link, 'ann')
  t.match(await see(link), {
    status: 200,
    text: /Should ann@mail\.example receive emails from Corner Shop\?/,
  })
  t.equal((await see(link, { method: 'HEAD' })).status, 200)
  t.same(events(), [], 'a scanner that follows the link confirms nothing')
  t.match(await see(link, { method: 'POST' }), { status: 200, text: /You are subscribed/ })
  t.match(await contact('ann@mail.example'), { first_name: 'Ann', subscribed: true, lists: [{ id: list }] })
  const once = ['contact.created', 'list.member_added', 'form.submitted']
  t.same(
    events().map(({ kind }) => kind),
    once,
  )
  t.match(await see(link, { method: 'POST' }), { status: 200, text: /You are subscribed/ })
  t.match(await see(link), { status: 200, text: /You are subscribed/ })
  t.same(
    events().map(({ kind }) => kind),
    once,
    'twice is as once',
  )
})

// proves: decisions: Deliverability > Forms (additive the source of
t.test('a confirmed submission is counted when it is made and when it is confirmed', async t => {
  const { form, see, get, linkTo, clock } = await open(t)
  const path = await form({ name: 'x', double_opt_in: true })
  const counts = async () => (await get(`/forms/${path.split('/').at(-1)}/submissions?days=2`)).body.data
  for (let n = 0; n < 2; n += 1) await see(path, { json: { email: 'ann@mail.example' } })
  await see(path, { json: { email: 'bob@mail.example' } })
  t.match(await counts(), { submitted: 2, completed: 0 }, 'a repeat that sends no mail is no submission')
  const { path: link } = await linkTo('ann@mail.example')
  clock.skip(86_400_000)
  for (let n = 0; n < 2; n += 1) await see(link, { method: 'POST' })
  t.match(await counts(), {
    submitted: 2,
    completed: 1,
    days: [
      { submitted: 2, completed: 0 },
      { submitted: 0, completed: 1 },
    ],
  })
})

t.test("submissions are counted on days of the workspace's time zone", async t => {
  const { form, see, get, clock, ...postroad } = await open(t)
  await postroad.run('workspace', 'set', postroad.workspaceId, 'timezone=Pacific/Kiritimati')
  const path = await form({ name: 'x' })
  const days = async () => (await get(`/forms/${path.split('/').at(-1)}/submissions?days=2`)).body.data.days
  await see(path, { json: { email: 'ann@mail.example' } })
  // The test begins at 10:00 UTC on the 5th, which is midnight there.
  t.same(await days(), [
    { date: '2026-01-05', submitted: 0, completed: 0 },
    { date: '2026-01-06', submitted: 1, completed: 1 },
  ])
  clock.skip(86_400_000)
  await see(path, { json: { email: 'bob@mail.example' } })
  t.match(await days(), [
    { date: '2026-01-06', submitted: 1 },
    { date: '2026-01-07', submitted: 1 },
  ])
})

t.test('a confirmation brings back who has unsubscribed; without one they stay away', async t => {
  const { form, see, post, contact, get, linkTo } = await open(t)
  const emails = ['ann@mail.example', 'bob@mail.example']
  for (const email of emails) {
    await post('/contacts', { email, first_name: 'Old' })
    await post('/suppressions', { email, reason: 'unsubscribe' })
  }
  await until('contacts to follow', async () => (await contact('bob@mail.example')).subscribed === false)
  const open1 = await form({ name: 'single', fields: [NAME] })
  const open2 = await form({ name: 'double', fields: [NAME], double_opt_in: true })
  t.equal((await see(open1, { form: { email: 'ann@mail.example', first_name: 'New' } })).status, 200)
  t.match(await contact('ann@mail.example'), { subscribed: false, first_name: 'Old' })
  t.equal((await see(open2, { form: { email: 'bob@mail.example', first_name: 'New' } })).status, 200)
  t.match(await contact('bob@mail.example'), { subscribed: false, first_name: 'Old' })
  const { path: link } = await linkTo('bob@mail.example')
  await see(link, { method: 'POST' })
  t.match(await contact('bob@mail.example'), { subscribed: true, first_name: 'New' })
  t.match((await get('/suppressions')).body.data, [{ email: 'ann@mail.example' }])
  t.equal((await get('/suppressions')).body.data.length, 1)
})

t.test('nobody learns from the answer who is a contact, or suppressed', async t => {
  const { form, see, post, captured } = await open(t)
  await post('/contacts', { email: 'known@mail.example' })
  await post('/suppressions', { email: 'stopped@mail.example' })
  for (const path of [await form({ name: 'a' }), await form({ name: 'b', double_opt_in: true })]) {
    const answers = []
    for (const email of ['known@mail.example', 'stopped@mail.example', 'fresh@mail.example'])
      answers.push((await see(path, { json: { email } })).text)
    t.equal(new Set(answers).size, 1, answers.join())
  }
  await until('both mails', async () => (await captured()).length === 2 || undefined)
  t.notOk((await captured()).some(({ recipient }) => recipient === 'stopped@mail.example'))
})

// proves: decisions: Deliverability > Forms (additive the source of
t.test('a form cannot flood a mailbox, and one address cannot flood a form', async t => {
  const { form, see, captured, clock, linkTo } = await open(t)
  const path = await form({ name: 'x', double_opt_in: true })
  for (let n = 0; n < 3; n++) t.equal((await see(path, { json: { email: 'ann@mail.example' } })).status, 200)
  await linkTo('ann@mail.example')
  t.equal((await captured()).length, 1)
  for (let n = 3; n < 20; n++) await see(path, { json: { email: 'x' } })
  t.match(await see(path, { json: { email: 'bob@mail.example' } }), {
    status: 429,
    headers: { 'retry-after': String },
    text: /rate_limited/,
  })
  await clock.advance(11 * 60_000)
  t.equal((await see(path, { json: { email: 'ann@mail.example' } })).status, 200)
  await linkTo('ann@mail.example', 2)
})

t.test('an expired link says so and leads back to the form; an invalid one gets a helpful page', async t => {
  const { form, see, linkTo, clock, contact, remove, linkAs, optInId } = await open(t)
  const path = await form({ name: 'x', double_opt_in: true })
  await see(path, { form: { email: 'ann@mail.example' } })
  const { path: link } = await linkTo('ann@mail.example')
  t.match(await see('/s/x', { method: 'POST' }), { status: 404, text: /This link does not work/ })
  t.match(await see(`${link.slice(0, -2)}AA`), { status: 404 })
  const old = { recipient: 'ann@mail.example', madeAt: clock.now() - 7 * 86_400_000 - 1 }
  const late = await see(await linkAs({ ...old, subjectId: optInId() }), { method: 'POST' })
  t.match(late, { status: 410, text: /This link has expired/ })
  t.match(late.text, `<a href="..${path}">`)
  t.match(await see(await linkAs({ ...old, subjectId: MADE_UP })), {
    status: 410,
    text: /This link has expired/,
  })
  t.equal(await contact('ann@mail.example'), undefined)
  await remove(`/forms/${path.slice(3)}`)
  t.match(await see(link), { status: 410, text: /This form is closed/ })
  t.match(await see(link, { method: 'POST' }), { status: 410 })
  t.equal(await contact('ann@mail.example'), undefined)
})

// proves: decisions: Deliverability > Forms (additive the source of
t.test(
  'a submission with the hidden field filled in is not stored, and its sender is asked to submit again',
  async t => {
    const { form, see, contact, events } = await open(t)
    const path = await form({ name: 'x', fields: [NAME] })
    const filled = { email: 'ann@mail.example', first_name: 'Ann', leave_blank: 'https://spam.example' }
    const page = await see(path, { form: filled })
    t.match(page, { status: 400, text: /role="alert"[^]*Please submit the form again/ })
    t.match(page.text, /value="ann@mail.example"[^]*value="Ann"[^]*name="leave_blank"\s+value=""/)
    t.notMatch(page.text, 'spam.example')
    t.match(await see(path, { json: filled }), { status: 400, text: /"path":"leave_blank"/ })
    t.equal(await contact('ann@mail.example'), undefined)
    t.same(events(), [])
    t.match(await see(path, { form: { ...filled, leave_blank: '' } }), { status: 200, text: /Thank you/ })
    t.match(await contact('ann@mail.example'), { first_name: 'Ann' })
  },
)

t.test('the hidden field is hidden without style, and nothing that a browser fills in', async t => {
  const { form, see, get } = await open(t)
  const path = await form({ name: 'x', redirect_url: 'https://shop.example/' })
  const snippet = (await get(`/forms/${path.slice(3)}/embed`)).body.data.html
  for (const html of [(await see(path)).text, snippet]) {
    t.match(
      html,
      /<div hidden inert aria-hidden="true">\s*<label\s*>Leave this field empty\s*<input\s+name="leave_blank"/,
    )
    for (const attribute of ['tabindex="-1"', 'autocomplete="off"', 'data-1p-ignore', 'data-lpignore="true"'])
      t.match(html, attribute)
    t.notMatch(html, /class="away"/)
  }
})

t.test('check boxes say whether they are required, as all fields do', async t => {
  const { form, see, get } = await open(t)
  const path = await form({
    name: 'x',
    fields: [
      { name: 'terms', label: 'I agree', type: 'checkbox', required: true },
      { name: 'news', label: 'News too', type: 'checkbox' },
    ],
  })
  for (const html of [(await see(path)).text, (await get(`/forms/${path.slice(3)}/embed`)).body.data.html]) {
    t.match(html, /I agree <small>\(required\)<\/small>/)
    t.match(html, /News too <small>\(optional\)<\/small>/)
  }
})

// proves: decisions: Deliverability > Forms (additive the source of
// operations: GET /forms/{id}/embed
t.test('a form stands in a page elsewhere as plain HTML, and is sent from there as JSON too', async t => {
  const { form, see, get } = await open(t)
  const path = await form({ name: 'x', fields: [NAME], redirect_url: 'https://shop.example/' })
  const { status, body } = await get(`/forms/${path.slice(3)}/embed?language=fr`)
  t.equal(status, 200)
  t.match(body.data.html, `action="https://pages.shop.example/mail${path}"`)
  t.match(body.data.html, /name="first_name"[^]*S’abonner/)
  t.notMatch(body.data.html, /<script|style=/)
  const code = body.data.html as string
  t.match(
    code,
    /^<form method="post" action="[^"]+">\n {2}<div class="field">\n {4}<label for="f-email">[^\n]+<\/label>\n {4}<input id="f-email"/,
  )
  t.match(code, /\n {2}<button>[^\n]+<\/button>\n<\/form>\n$/)
  t.same(
    code.split('\n').filter(line => / $|\S {2}/.test(line)),
    [],
    'no line is ragged',
  )
  const json = { email: 'ann@mail.example', first_name: 'Ann' }
  t.match(await see(path, { json, headers: { Origin: 'https://blog.example' } }), {
    status: 200,
    headers: { 'access-control-allow-origin': '*' },
    text: '{"data":{"success":true,"status":"subscribed","redirect_url":"https://shop.example/"}}',
  })
  t.match(await get(`/forms/${MADE_UP}/embed`), { status: 404, body: { error: { code: 'not_found' } } })
})

t.test('a form whose mail cannot be sent says that it takes nothing, and the operator reads why', async t => {
  const { form, see, set, log, contact } = await open(t)
  await set('default_from_email=')
  const path = await form({ name: 'x', double_opt_in: true })
  t.match(await see(path, { form: { email: 'ann@mail.example' } }), {
    status: 503,
    text: /Temporarily unavailable/,
  })
  t.equal(await contact('ann@mail.example'), undefined)
  t.match(
    log.lines.find(({ event }) => event === 'form submission failed'),
    { level: 'warn', fields: { error: /from_email/ } },
  )
})

t.test('confirmations use nothing of the limit of what the API sends, and a mailbox gets few', async t => {
  const { form, see, set, post, captured } = await open(t)
  await set('hourly_limit=2')
  const path = await form({ name: 'x', double_opt_in: true })
  for (let n = 0; n < 10; n += 1) {
    const { status, text } = await see(path, { json: { email: `victim+${n}@mail.example` } })
    t.match({ status, text }, { status: 200, text: /confirmation_sent/ }, 'nobody learns how often')
  }
  await until('five mails', async () => (await captured()).length >= 5 || undefined)
  const mail = { from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.' }
  for (const to of ['ann@mail.example', 'bob@mail.example'])
    t.equal((await post('/email/send', { ...mail, to })).status, 200)
  t.match(await post('/email/send', { ...mail, to: 'cid@mail.example' }), {
    status: 403,
    body: { error: { code: 'limit_reached' } },
  })
  await until('all of it', async () => (await captured()).length >= 7 || undefined)
  t.equal((await captured()).filter(({ recipient }) => recipient.startsWith('victim')).length, 5)
})

t.test('a confirmation mail advertises nothing, and forms without number share one allowance', async t => {
  const { form, set, see, linkTo, captured } = await open(t)
  await set('company_name=Win now at https://evil.example/prize', 'company_address=https://evil.example')
  await set('default_from_name=www.evil.example', 'hourly_limit=40')
  const forms = await Promise.all([1, 2, 3].map(n => form({ name: `F${n}`, double_opt_in: true })))
  await see(forms[0] ?? '', { form: { email: 'ann@home.example' } })
  const { mail } = await linkTo('ann@home.example')
  t.notMatch(`${String(mail.subject)}${String(mail.html)}${mail.text ?? ''}${mail.from?.text ?? ''}`, 'evil')
  const domain = mail.from?.value[0]?.address?.split('@')[1] ?? ''
  t.equal(mail.subject, `Please confirm your subscription: ${domain}`)
  const statuses: number[] = []
  for (let n = 0; n < 15; n += 1)
    statuses.push((await see(forms[n % 3] ?? '', { form: { email: `p${n}@home.example` } })).status)
  t.same(statuses, [...Array<number>(9).fill(200), ...Array<number>(6).fill(503)])
  await until('all confirmations', async () => (await captured()).length === 10)
})

t.test('a redirect_url writes nothing else into the policy of the page', async t => {
  const { form, see, sql } = await open(t)
  const path = await form({ name: 'x', redirect_url: 'https://shop.example:8443/thanks' })
  const policy = async () => String((await see(path)).headers['content-security-policy'])
  t.match(await policy(), "form-action 'self' https://shop.example:8443; frame-ancestors 'none'")
  // Stored before such hosts were refused.
  for (const host of ['a;script-src', 'a,default-src', "a'unsafe-inline'", 'a*']) {
    sql(`update forms set redirect_url = 'https://${host.replaceAll("'", "''")}/'`)
    t.match(await policy(), "form-action 'self'; frame-ancestors 'none'", host)
  }
})
