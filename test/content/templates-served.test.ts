/** Templates on the running appliance. */
import t, { type Test } from 'tap'
import { openTestAppliance } from '../support/program/appliance.js'

const UNKNOWN = '0192f000-0000-7000-8000-00000000000b'

async function open(t: Test) {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  const path = '/api/v1/templates'
  return {
    ...postroad,
    key,
    get: (below = '', as = key) => postroad.get(`${path}${below}`, { key: as }),
    create: (body: unknown, as = key) => postroad.post(path, body, { key: as }),
    post: (below: string, body: unknown = {}) => postroad.post(`${path}${below}`, body, { key }),
    patch: (id: string, body: unknown) => postroad.patch(`${path}/${id}`, body, { key }),
    remove: (id: string) => postroad.delete(`${path}/${id}`, { key }),
    addContact: (body: object) => postroad.post('/api/v1/contacts', body, { key }),
    made: async (body: object = {}) => {
      const { body: answer } = await postroad.post(
        path,
        { name: 'Welcome', html: '<p>Hi</p>', ...body },
        { key },
      )
      return (answer as { data: { id: string } }).data.id
    },
  }
}

// proves: What the service does > Templates with a merge-tag language
// proves: Template > Creation fields name (required) html | Other template record fields and
// proves: Campaigns and templates > GET /templates | POST /templates | GET /templates/:id
t.test('a template is created with version 1, returned in full and listed without content', async t => {
  const { create, get } = await open(t)
  const structure = { blocks: [{ id: 'a', type: 'spacer', content: { height: 5 } }], settings: {} }
  const made = await create({
    name: 'Welcome',
    html: '<p>Hi</p>',
    description: 'First',
    json_structure: structure,
  })
  const whole = {
    name: 'Welcome',
    description: 'First',
    version: 1,
    is_sandbox: false,
    html: '<p>Hi</p>',
    json_structure: structure,
  }
  t.match(made, { status: 201, body: { data: whole } })
  const { id } = (made.body as { data: { id: string } }).data
  t.match(await get(`/${id}`), { status: 200, body: { data: { id, ...whole } } })
  const list = (await get()).body as { data: object[]; pagination: object }
  t.match(list, { data: [{ id, name: 'Welcome', version: 1 }], pagination: { total: 1 } })
  t.notOk('html' in list.data[0]! || 'json_structure' in list.data[0]!)
})

// proves: Template > html is what is sent
t.test('a structure without html is rendered', async t => {
  const { create } = await open(t)
  const blocks = [{ id: 'a', type: 'header', content: { text: 'Hello {{firstName}}' } }]
  const { body } = await create({ name: 'Blocks', json_structure: { blocks } })
  t.match(body, { data: { html: /<h1[^>]*>Hello \{\{firstName\}\}<\/h1>/, json_structure: { blocks } } })
})

// proves: Template > blocks | settings.fontFamily | settings.contentWidth
// proves: Template > settings.backgroundColor, contentBackgroundColor, defaultTextColor | header | text | button
// proves: Template > image | divider | spacer | html
t.test('every block type of the contract is accepted and rendered with its fields', async t => {
  const { create } = await open(t)
  const blocks: [string, object, string[]][] = [
    [
      'header',
      { text: 'Head', level: 2, alignment: 'center', color: '#112233' },
      ['<h2', 'align="center"', '#112233'],
    ],
    [
      'text',
      { html: '<b>bold</b>', alignment: 'right', color: '#445566' },
      ['<b>bold</b>', 'align="right"', '#445566'],
    ],
    [
      'button',
      {
        text: 'Go',
        url: 'https://x.example/',
        alignment: 'left',
        backgroundColor: '#010203',
        textColor: '#0a0b0c',
        borderRadius: 7,
        fullWidth: true,
      },
      [
        '>Go</a>',
        'href="https://x.example/"',
        'bgcolor="#010203"',
        'color:#0a0b0c',
        'border-radius:7px',
        'width="100%"',
      ],
    ],
    [
      'image',
      { src: 'https://x.example/a.png', alt: 'Alt', width: 123, alignment: 'left' },
      ['alt="Alt" width="123"'],
    ],
    [
      'divider',
      { color: '#0d0e0f', thickness: 4, style: 'dotted', width: 40 },
      ['4px dotted #0d0e0f', 'width="40%"'],
    ],
    ['spacer', { height: 77 }, ['height="77"']],
    ['html', { html: '<u>raw</u>' }, ['<u>raw</u>']],
    ['columns', { columns: [{ blocks: [] }, { blocks: [] }] }, ['max-width:350px']],
    ['social', { links: [{ platform: 'Web', url: 'https://w.example/' }] }, ['href="https://w.example/"']],
    ['dynamic', { source: 'items', blocks: [] }, ['{{#each items}}']],
    ['conditional', { condition: 'x == 1', blocks: [] }, ['{{#if x == 1}}']],
    ['hero', { title: 'Hero' }, ['Hero</h1>']],
    ['profile', { name: 'Ann' }, ['Ann</div>']],
    ['dropshadow', { blocks: [] }, ['box-shadow']],
  ]
  const settings = {
    fontFamily: 'Georgia, serif',
    contentWidth: 700,
    backgroundColor: '#aaaaaa',
    contentBackgroundColor: '#bbbbbb',
    defaultTextColor: '#cccccc',
  }
  for (const [type, content, parts] of blocks) {
    const structure = {
      blocks: [
        { id: 'a', type, content },
        { id: 'b', type: 'text', content: {} },
      ],
      settings,
    }
    const { body } = await create({ name: type, json_structure: structure })
    const { html } = (body as { data: { html: string } }).data
    const framed = [
      'Georgia, serif',
      'max-width:700px',
      'background-color:#aaaaaa',
      'bgcolor="#bbbbbb"',
      'color:#cccccc',
    ]
    for (const part of [...parts, ...framed]) t.ok(html.includes(part), `${type}: ${part}`)
  }
})

// proves: Template > Every update creates a new; Campaigns and templates > PATCH /templates/:id
// answers: GET /templates/{id}/versions/{n}: not_found; POST /templates/{id}/versions/{n}/restore: not_found
t.test('every update creates a version that can be read and restored', async t => {
  const { made, patch, get, post } = await open(t)
  const id = await made()
  t.match(await patch(id, { html: '<p>Two</p>', description: 'second' }), {
    status: 200,
    body: { data: { version: 2 } },
  })
  t.match(await patch(id, { description: null }), {
    body: { data: { version: 3, description: null, html: '<p>Two</p>' } },
  })
  t.match(await patch(id, {}), { body: { data: { version: 3 } } }, 'nothing changed, no version')
  const versions = (await get(`/${id}/versions`)).body as {
    data: { version: number; description: string | null }[]
  }
  t.same(
    versions.data.map(({ version, description }) => [version, description]),
    [
      [3, null],
      [2, 'second'],
      [1, null],
    ],
  )
  t.match(await get(`/${id}/versions/1`), { body: { data: { version: 1, html: '<p>Hi</p>' } } })
  t.match(await post(`/${id}/versions/1/restore`), {
    status: 200,
    body: { data: { version: 4, html: '<p>Hi</p>' } },
  })
  t.match(await get(`/${id}/versions/9`), { status: 404, body: { error: { code: 'not_found' } } })
  t.match(await post(`/${id}/versions/9/restore`), { status: 404, body: { error: { code: 'not_found' } } })
})

// proves: Template > html is what is sent
t.test('html and structure: given fields are replaced, and null removes the structure', async t => {
  const { made, patch } = await open(t)
  const id = await made()
  const structure = { blocks: [{ id: 'a', type: 'html', content: { html: '<i>block</i>' } }] }
  t.match(await patch(id, { json_structure: structure }), { body: { data: { html: /<i>block<\/i>/ } } })
  t.match(await patch(id, { html: '<p>own</p>' }), {
    body: { data: { html: '<p>own</p>', json_structure: structure } },
  })
  t.match(await patch(id, { json_structure: null }), {
    body: { data: { html: '<p>own</p>', json_structure: null } },
  })
})

// proves: Template > Creation fields name (required) html | html is what is sent
// proves: Campaigns and templates > POST /templates
t.test('an invalid template is rejected by field name, merge tags with line and column', async t => {
  const { create, made, patch, get } = await open(t)
  const cases: [object, string, RegExp?][] = [
    [{ html: '<p>' }, 'name'],
    [{ name: 'a' }, 'html'],
    [{ name: 'a', html: ' ' }, 'html'],
    [{ name: ' ', html: 'x' }, 'name'],
    [{ name: 'a\u0007', html: 'x' }, 'name'],
    [{ name: 'a', html: 'x\0' }, 'html'],
    [{ name: 'a', html: 'x'.repeat(262_145) }, 'html', /at most 256/],
    [{ name: 'a', html: '<p>\n{{#if x}}' }, 'html', /line 2, column 1: this #if has no/],
    [
      { name: 'a', html: 'x', json_structure: { blocks: [{ id: 'a', type: 'video', content: {} }] } },
      'json_structure.blocks.0.type',
    ],
    [
      {
        name: 'a',
        json_structure: { blocks: [{ id: 'a', type: 'html', content: { html: '{{#each x}}' } }] },
      },
      'json_structure.blocks.0.content.html',
      /content\.html: line 1, column 1: this #each has no .* \(html block "a"\)/,
    ],
    [{ name: 'a', html: 'x', colour: 'red' }, 'colour'],
  ]
  for (const [body, path, message = /./] of cases)
    t.match(
      await create(body),
      { status: 400, body: { error: { code: 'validation_error', path, message } } },
      JSON.stringify(body).slice(0, 80),
    )
  t.match(await create({ name: 'a', html: 'x'.repeat(262_144) }), { status: 201 })
  const id = await made()
  t.match(await patch(id, { html: '{{' }), { status: 400, body: { error: { path: 'html' } } })
  t.match(await get(`/${id}/versions`), { body: { pagination: { total: 1 } } })
})

// proves: decisions: Added after the whole contract > Blocks Every block's content has
t.test('an unknown block field is rejected with its path', async t => {
  const { create } = await open(t)
  const text = (content: object) => ({ id: 't', type: 'text', content })
  const refused = async (content: object) =>
    (await create({ name: 'a', json_structure: { blocks: [{ id: 'x', type: 'conditional', content }] } }))
      .body.error
  const rule = { field: 'vip', operator: 'equals', value: true }
  t.match(await refused({ if: 'vip', blocks: [text({})] }), {
    code: 'validation_error',
    path: 'json_structure.blocks.0.content.if',
  })
  t.match(await refused({ ...rule, blocks: [text({ foo: 1 })] }), {
    path: 'json_structure.blocks.0.content.blocks.0.content.foo',
  })
  t.equal(await refused({ ...rule, blocks: [text({ html: 'For some' })] }), undefined)
})

// proves: decisions: Added after the whole contract > Unsubscribe link Whether a mail
t.test('an unsubscribe link hidden from the recipient does not count', async t => {
  const { made, post } = await open(t)
  const link = '<a href="{{unsubscribe_url}}">Stop</a>'
  const id = await made({ html: `<body>{{#if vip}}${link}{{else}}<!-- ${link} -->{{/if}}</body>` })
  const shown = async (template_data: object) =>
    (await post(`/${id}/preview`, { template_data })).body.data.html.replace(/<!--.*?-->/g, '')
  t.notMatch(await shown({ vip: true }), 'Unsubscribe')
  t.match(await shown({ vip: false }), /<body><table.*>Unsubscribe<\/a>/)
})

t.test('a malformed merge tag is reported with its block and field, also in nested blocks', async t => {
  const { create } = await open(t)
  const block = (type: string, id: string, content: object) => ({ id, type, content })
  const fine = block('dynamic', 'list', {
    source: 'items',
    blocks: [block('text', 'item', { html: '{{this.name}}' })],
  })
  const fault = async (...blocks: object[]) => {
    const { body } = await create({ name: 'a', json_structure: { blocks: [fine, ...blocks, fine] } })
    const { path, message } = (body as { error: { path: string; message: string } }).error
    return [path, message.replace(`${path}: `, '')]
  }
  t.same(await fault(block('header', 'intro', { title: 'Hi {{name' })), [
    'json_structure.blocks.1.content.title',
    'line 1, column 4: this tag is not closed (header block "intro")',
  ])
  const inner = block('dynamic', 'd', {
    source: 'items',
    blocks: [block('button', 'go', { text: '{{this.name}}', url: '{{this.a b==c|}}' })],
  })
  const [path, message] = await fault(block('columns', 'c', { columns: [{ blocks: [inner] }] }))
  t.equal(path, 'json_structure.blocks.1.content.columns.0.blocks.0.content.blocks.0.content.url')
  t.match(message, /^line 1, column 1: .* \(button block "go"\)$/)
  const [begun] = await fault(block('html', 'one', { html: '{{#if a}}' }), block('text', 'two', {}))
  t.equal(begun, 'json_structure.blocks.1.content.html')
  const across = [block('html', 'one', { html: '{{#if a}}' }), block('html', 'two', { html: '{{/if}}' })]
  t.match(await create({ name: 'a', json_structure: { blocks: across } }), { status: 201 })
})

t.test(
  'a template stored with unknown block fields can be read, renamed, previewed and restored',
  async t => {
    const { made, get, patch, post, sql } = await open(t)
    const id = await made({ json_structure: { blocks: [] } })
    const structure = {
      blocks: [{ id: 'a', type: 'text', content: { html: 'x', foo: 1 }, bar: 2 }],
      old: true,
    }
    sql(`update template_versions set json_structure = '${JSON.stringify(structure)}'`)
    t.same((await get(`/${id}`)).body.data.json_structure, structure)
    t.match(await patch(id, { name: 'New name' }), {
      status: 200,
      body: { data: { version: 2, json_structure: structure } },
    })
    t.match(await post(`/${id}/preview`), { status: 200 })
    t.match(await post(`/${id}/versions/1/restore`), {
      status: 200,
      body: { data: { json_structure: structure } },
    })
    t.match(await patch(id, { json_structure: structure }), { status: 400 })
  },
)

// proves: What the service does > Templates with a merge-tag language; Template > Other template record fields and
// proves: Campaigns and templates > GET /templates
t.test('search matches each word in the name ignoring case and accents; wildcards are literal', async t => {
  const { made, get } = await open(t)
  for (const name of ['Été 2026 sale', 'Winter Sale', '100% off']) await made({ name })
  const found = async (search: string) =>
    ((await get(`?search=${encodeURIComponent(search)}`)).body as { data: { name: string }[] }).data.map(
      ({ name }) => name,
    )
  t.same(await found('SALE'), ['Winter Sale', 'Été 2026 sale'])
  t.same(await found('sale ete'), ['Été 2026 sale'])
  t.same(await found('%'), ['100% off'])
  t.same(await found('_'), [])
})

// proves: Template > Deleting is a soft delete; Campaigns and templates > DELETE /templates/:id
// proves: Errors > template_not_found
// answers: DELETE /templates/{id}: template_not_found; GET /templates/{id}: template_not_found
// answers: GET /templates/{id}/versions: template_not_found; GET /templates/{id}/versions/{n}: template_not_found
// answers: PATCH /templates/{id}: template_not_found; POST /templates/{id}/preview: template_not_found
// answers: POST /templates/{id}/versions/{n}/restore: template_not_found
t.test('a deleted template is gone everywhere', async t => {
  const { made, remove, get, patch, post } = await open(t)
  const id = await made()
  t.match(await remove(id), { status: 200, body: { data: { success: true } } })
  const gone = { status: 404, body: { error: { code: 'template_not_found' } } }
  t.match(await get(`/${id}`), gone)
  t.match(await get(`/${id}/versions`), gone)
  t.match(await get(`/${id}/versions/1`), gone)
  t.match(await patch(id, { name: 'b' }), gone)
  t.match(await remove(id), gone)
  t.match(await post(`/${id}/preview`), gone)
  t.match(await post(`/${id}/versions/1/restore`), gone)
  t.match(await get(`/${UNKNOWN}`), gone)
  t.match(await get(), { body: { data: [] } })
})

t.test('a sandbox has separate templates', async t => {
  const { made, create, get, ...postroad } = await open(t)
  const id = await made()
  const sandbox = await postroad.makeKey('--sandbox')
  t.match(await get(`/${id}`, sandbox), { status: 404 })
  t.match(await create({ name: 'Own', html: 'x' }, sandbox), {
    status: 201,
    body: { data: { is_sandbox: true } },
  })
  t.match(await get('', sandbox), { body: { pagination: { total: 1 } } })
})

// answers: POST /templates/{id}/preview: contact_not_found
t.test('a preview is rendered with template_data and the footer, and sends nothing', async t => {
  const { made, post, addContact } = await open(t)
  const id = await made({ html: '<body><p>Hi {{name|you}} {{current_year}}</p></body>' })
  const { status, body } = await post(`/${id}/preview`, {
    template_data: { name: '<Ann>' },
    subject: 'For {{name}}',
  })
  t.equal(status, 200)
  t.match(body, {
    data: {
      subject: 'For ',
      html: /<p>Hi &lt;Ann&gt; \d{4}<\/p><table.*Unsubscribe.*Sent with Postroad.*<\/body>/s,
      text: /Hi <Ann> \d{4}/,
    },
  })
  t.match(await post(`/${id}/preview`), { body: { data: { subject: null, html: /Hi you/ } } })
  const ann = { email: 'ann@example.com', first_name: 'Ann', attributes: { city: 'Ulm' } }
  const created = await addContact(ann)
  const contact = (created.body as { data: { id: string } }).data.id
  const letter = await made({ html: '<p>{{first_name}} {{attributes.city}} {{email}}</p>' })
  t.match(await post(`/${letter}/preview`, { contact_id: contact, template_data: { email: 'own' } }), {
    status: 200,
    body: { data: { html: /<p>Ann Ulm own<\/p>/ } },
  })
  t.match(await post(`/${id}/preview`, { contact_id: UNKNOWN }), {
    status: 404,
    body: { error: { code: 'contact_not_found', path: 'contact_id' } },
  })
  t.match(await post(`/${id}/preview`, { subject: '{{' }), {
    status: 400,
    body: { error: { path: 'subject' } },
  })
})

// operations: POST /templates/preview
t.test('content that is not stored is previewed as a template with it would be', async t => {
  const { made, post, addContact } = await open(t)
  const blocks = [
    { id: 'a', type: 'header', content: { text: 'Hello {{first_name|there}}' } },
    { id: 'b', type: 'button', content: { text: 'Go' } },
  ]
  const created = await addContact({ email: 'ann@example.com', first_name: 'Ann' })
  const contact_id = (created.body as { data: { id: string } }).data.id
  const id = await made({ html: undefined, json_structure: { blocks } })
  const request = { contact_id, subject: 'For {{first_name}}' }
  const stored = (await post(`/${id}/preview`, request)).body as { data: { html: string } }
  const { status, body } = await post('/preview', { json_structure: { blocks }, ...request })
  t.equal(status, 200)
  t.match(body, {
    data: {
      ...stored.data,
      subject: 'For Ann',
      size: Buffer.byteLength(stored.data.html),
      warnings: [{ code: 'link_without_url', count: 1 }],
    },
  })
  t.match(stored.data.html, /Hello Ann/)
  t.match(await post('/preview', { html: '<p>{{x|y}}</p><img src="https://a.example/">' }), {
    body: { data: { html: /<p>y<\/p>/, subject: null, warnings: [{ code: 'image_without_alt', count: 1 }] } },
  })
  t.match(await post('/preview', { html: `<p>${'x'.repeat(110_000)}</p>` }), {
    body: { data: { warnings: [{ code: 'clipped', count: 1 }] } },
  })
})

// answers: POST /templates/preview: contact_not_found
t.test('a preview of faulty content says where the fault is', async t => {
  const { post } = await open(t)
  const refused = async (body: object, error: object) =>
    t.match(await post('/preview', body), { status: 400, body: { error } })
  await refused({}, { path: 'html' })
  await refused({ html: ' ' }, { path: 'html' })
  await refused({ html: '<p>{{#if x}}</p>' }, { path: 'html', message: /line 1/ })
  await refused({ html: 'x'.repeat(300_000) }, { path: 'html', message: /at most 256KB/ })
  await refused({ html: 'x', subject: '{{' }, { path: 'subject' })
  await refused(
    { json_structure: { blocks: [{ id: 'a', type: 'header', content: { level: 7 } }] } },
    { path: 'json_structure.blocks.0.content.level' },
  )
  await refused(
    { json_structure: { blocks: [{ id: 'a', type: 'text', content: { html: '{{#each x}}' } }] } },
    { path: /^json_structure\.blocks\.0/ },
  )
  t.match(await post('/preview', { html: 'x', contact_id: UNKNOWN }), { status: 404 })
})

// answers: POST /templates/{id}/restore: template_not_found
t.test('a deleted template is restored with its versions', async t => {
  const { made, get, patch, post, remove } = await open(t)
  const id = await made()
  await patch(id, { name: 'Second' })
  await remove(id)
  t.match(await get(`/${id}`), { status: 404 })
  t.match(await post(`/${id}/restore`), { status: 200, body: { data: { id, name: 'Second', version: 2 } } })
  t.match(await get(`/${id}/versions`), { body: { pagination: { total: 2 } } })
  for (const other of [id, UNKNOWN])
    t.match(await post(`/${other}/restore`), { status: 404, body: { error: { code: 'template_not_found' } } })
})

t.test('changes are recorded in the activity log', async t => {
  const { made, patch, post, remove, baseUrl, key } = await open(t)
  const id = await made()
  await patch(id, { name: 'New name' })
  await post(`/${id}/versions/1/restore`)
  await remove(id)
  const answer = await fetch(`${baseUrl}/api/v1/activity`, { headers: { authorization: `Bearer ${key}` } })
  const { data } = (await answer.json()) as { data: { action: string; subject: string }[] }
  t.same(
    data
      .filter(({ action }) => action.startsWith('template.'))
      .map(({ action, subject }) => [action, subject]),
    [
      ['template.deleted', 'Welcome'],
      ['template.restored', 'Welcome'],
      ['template.updated', 'New name'],
      ['template.created', 'Welcome'],
    ],
  )
})

// proves: decisions: Automations > Status draft active paused other
// answers: DELETE /templates/{id}: precondition_failed; PATCH /templates/{id}: precondition_failed
// answers: POST /templates/{id}/versions/{n}/restore: precondition_failed
t.test('of two updates with the same ETag only the first succeeds', async t => {
  const { made, key, ...postroad } = await open(t)
  const path = `/api/v1/templates/${await made()}`
  const ask = (method: string, headers: Record<string, string>, body?: object, below = '') =>
    fetch(postroad.baseUrl + path + below, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  const seen = (await ask('GET', {})).headers.get('etag') ?? ''
  t.match(seen, /^"[\w-]+\.[\w-]+"$/, 'strong')
  const unchanged = await ask('GET', { 'If-None-Match': `"other", W/${seen}` })
  t.same([unchanged.status, await unchanged.text(), unchanged.headers.get('etag')], [304, '', seen])

  const editors = await Promise.all(['A', 'B'].map(name => ask('PATCH', { 'If-Match': seen }, { name })))
  t.same(editors.map(({ status }) => status).sort(), [200, 412])
  const [won] = editors.filter(({ status }) => status === 200)
  const current = (await ask('GET', { 'If-None-Match': seen })).headers.get('etag') ?? ''
  t.equal(won?.headers.get('etag'), current)
  t.not(current, seen)
  const stale = { error: { code: 'precondition_failed', path: 'If-Match' } }
  for (const [method, body, below] of [
    ['PATCH', { name: 'C' }],
    ['PATCH', {}],
    ['POST', undefined, '/versions/1/restore'],
    ['DELETE', undefined],
  ] as const) {
    const refused = await ask(method, { 'If-Match': `W/${current}, ${seen}` }, body, below)
    t.same(refused.status, 412, `${method} ${below}`)
    t.match(await refused.json(), stale)
  }
  t.equal((await ask('PATCH', { 'If-Match': 'C' }, { name: 'C' })).status, 400)
  t.equal((await ask('PATCH', { 'If-Match': '*' }, { name: 'D' })).status, 200)
  t.equal((await ask('PATCH', {}, { name: 'E' })).status, 200, 'it need not be sent')
  const last = (await ask('GET', {})).headers.get('etag') ?? ''
  t.equal((await ask('DELETE', { 'If-Match': `"other", ${last}` })).status, 200)
})
