/** Mail that is filled in for each recipient, as it is received: templates, merge tags, the compliance footer. */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { simpleParser, type ParsedMail } from 'mailparser'
import t, { type Test } from 'tap'
import type { AskOptions } from '../../support/api/client.js'
import { randomOf, randomStructure } from '../../support/content/random-structure.js'
import { openTestAppliance } from '../../support/program/appliance.js'
import { dkimVerdicts, dkimZone, type PublishedDomain } from '../../support/dkim.js'
import { until } from '../../support/until.js'

const UNKNOWN = '0192f000-0000-7000-8000-00000000000b'
const good = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello' }

async function open(t: Test, options: Parameters<typeof openTestAppliance>[1] = {}) {
  const postroad = await openTestAppliance(t, options)
  const key = await postroad.makeKey()
  const ask = {
    contact: async (body: object) =>
      String((await postroad.post('/api/v1/contacts', body, { key })).body.data.id),
    template: async (html: string, as = key) =>
      String((await postroad.post('/api/v1/templates', { name: 'T', html }, { key: as })).body.data.id),
    send: (body: object, as = key) => postroad.send(as, { ...good, ...body }),
    batch: (messages: readonly object[]) =>
      postroad.post('/api/v1/email/batch', { messages: messages.map(one => ({ ...good, ...one })) }, { key }),
    /** As the local inbox has it. */
    received: async (id: string): Promise<ParsedMail & { raw: Buffer }> => {
      await postroad.messageOnce(key, id, 'delivered')
      const raw = Buffer.from(String((await postroad.get(`/capture/${id}`)).body.data.raw), 'latin1')
      return Object.assign(await simpleParser(raw), { raw })
    },
  }
  const mails = async (body: object): Promise<ParsedMail[]> => {
    const { status, body: answer } = await ask.send(body)
    if (status !== 200) throw new Error(JSON.stringify(answer))
    const ids = (answer.data.results as { message_id: string }[]).map(({ message_id: id }) => id)
    return Promise.all(ids.map(ask.received))
  }
  const mail = async (body: object) => (await mails(body))[0]!
  const { workspaceId, dataDir, clock } = postroad
  return {
    ...{ workspaceId, dataDir, clock, key, ...ask, mails, mail },
    get: (path: string, as = key) => postroad.get(path, { key: as }),
    post: (path: string, body: unknown, options: AskOptions = { key }) => postroad.post(path, body, options),
    patch: (path: string, body: unknown) => postroad.patch(path, body, { key }),
    remove: (path: string) => postroad.delete(path, { key }),
    command: <T>(...args: string[]) => postroad.json<T>(...args),
    makeKey: (...options: string[]) => postroad.makeKey(...options),
    messageOnce: (id: string, status: string) => postroad.messageOnce(key, id, status) as Promise<object>,
    rowCounts: () => postroad.rowCounts(),
  }
}

const fault = (path: string, message: RegExp) => ({
  status: 400,
  body: { error: { code: 'validation_error', path, message } },
})

// proves: Email > template_data; Content rendering rules > Contact tags {{firstName}} or {{first_name}}
// proves: decisions: Email > html and template_id both given
t.test("each recipient's mail is merged with their contact and the data of the request", async t => {
  const { contact, mails } = await open(t)
  await contact({ email: 'Ann@one.test', first_name: 'Ann', attributes: { plan: 'gold', company: 'Acme' } })
  await contact({ email: 'bob@two.test', first_name: '<b>Bob</b>' })
  const [ann, bob, carl] = await mails({
    to: ['ann@one.test', 'bob@two.test', 'carl@two.test'],
    subject: 'Order {{order.id}} for {{firstName|friend}}',
    html: '<p>{{first_name|friend|uppercase}} {{company}} {{attributes.plan}} {{email}} {{order.id}} {{current_year}}</p>',
    text: '{{first_name|friend}} & {{order.id}}: {{#each items}}{{this}};{{/each}}',
    template_data: { order: { id: 7 }, items: ['tea', 'cup'], current_year: 'never' },
  })
  t.match(ann, { subject: 'Order 7 for Ann', text: 'Ann & 7: tea;cup;' })
  t.match(ann!.html, '<p>ANN Acme gold ann@one.test 7 2026</p>')
  t.match(bob, { subject: 'Order 7 for Bob', text: '<b>Bob</b> & 7: tea;cup;' })
  t.match(bob!.html, '<p>&lt;B&gt;BOB&lt;/B&gt;   bob@two.test 7 2026</p>')
  t.match(carl, { subject: 'Order 7 for friend', text: 'friend & 7' })
  t.match(carl!.html, '<p>FRIEND   carl@two.test 7 2026</p>')
})

t.test('for random block documents, the mail is what the preview showed', async t => {
  const { contact, mail, post } = await open(t)
  const data = { items: [{ name: 'tea' }, { name: 'cup' }], total: 120 }
  const ann = { email: 'ann@one.test', first_name: 'Ann', attributes: { plan: 'pro' } }
  const contact_id = await contact(ann)
  for (let seed = 1; seed <= 50; seed++) {
    const json_structure = randomStructure(randomOf(seed), { isForeign: false })
    const made = await post('/api/v1/templates', { name: `Seed ${seed}`, json_structure })
    const preview = await post('/api/v1/templates/preview', {
      json_structure,
      contact_id,
      template_data: data,
    })
    const { html, text } = await mail({
      to: 'ann@one.test',
      template_id: made.body.data.id,
      template_data: data,
      track_opens: false,
      track_clicks: false,
    })
    // Links of the recipient's own lead nowhere in a preview.
    const shown = String(html).replace(/href="https?:\/\/[^"]*\/[upv]\/[^"]*"/g, 'href="#"')
    t.equal(shown.trimEnd(), preview.body.data.html.trimEnd(), `seed ${seed}`)
    t.equal(typeof text, 'string')
  }
})

const LANGUAGE: readonly (readonly [string, string])[] = [
  ['{{firstName}} {{first_name}} {{lastName}} {{last_name}} {{email}}', 'Ann Ann Lee Lee ann@one.test'],
  ['{{company}} {{attributes.plan}}', 'Acme gold'],
  [
    '{{company_name}}; {{company_address}}; {{current_year}} {{current_month}} {{current_date}}',
    'Birds; ; 2026 January January 5, 2026',
  ],
  [
    '{{none|you}} {{none|you|uppercase}} {{plan|x|capitalize}} {{lastName||uppercase}} {{plan|x|lowercase}} {{plan|x|text}}',
    'you YOU Big LEE big BIG',
  ],
  ['{{none}}.', '.'],
  [
    '{{#if n > 1}}a{{else}}b{{/if}}{{#unless n == 2}}c{{/unless}}{{#if n != 2}}d{{/if}}{{#if n >= 2}}e{{/if}}{{#if n <= 2}}f{{/if}}{{#if n < 2}}g{{/if}}',
    'aef',
  ],
  [
    '{{#each list}}{{@index}}{{this.name}}{{#if @first}}!{{/if}}{{#if @last}}.{{/if}}{{/each}} {{#each plain}}{{this}}{{/each}}',
    '0x!1y. ab',
  ],
  ['{{{attributes.plan}}}{{email}} {{{plan}}}', 'ann@one.test BIG'],
]

// proves: Content rendering rules > Contact tags {{firstName}} or {{first_name}}
// proves: Content rendering rules > System tags {{unsubscribe_url}} {{preferences_url}} {{company_name}}
// proves: Content rendering rules > Fallback and format {{field|fallback}} uses
// proves: Content rendering rules > Conditions {{#if expr}}{{else}}{{/if}} and {{#unless
// proves: Content rendering rules > Loops {{#each arrayName}}{{/each}} over arrays | Every key of template_data is
t.test('the whole language is understood where mail is sent', async t => {
  const { contact, mail, command, workspaceId } = await open(t)
  await command('workspace', 'set', workspaceId, 'company_name=Birds')
  const attributes = { plan: 'gold', company: 'Acme' }
  await contact({ email: 'ann@one.test', first_name: 'Ann', last_name: 'Lee', attributes })
  const { text } = await mail({
    text: LANGUAGE.map(([source]) => source).join('\n'),
    template_data: {
      n: 2,
      plan: 'BIG',
      list: [{ name: 'x' }, { name: 'y' }],
      plain: ['a', 'b'],
      company_name: 'Fake',
    },
  })
  t.same(
    text?.trimEnd().split('\n'),
    LANGUAGE.map(([, result]) => result),
  )
})

// proves: decisions: Rendering > Values merged into HTML are
t.test('a value becomes no markup, no header and no script', async t => {
  const { mail } = await open(t)
  const made = await mail({
    subject: 'For {{name}}',
    html: '<p>{{name}}</p><a href="{{link}}" title="{{name}}">go</a><div>{{{name}}}</div>',
    template_data: { name: '<b>"Tom"</b>', link: 'javascript:alert(1)' },
  })
  t.equal(made.subject, 'For "Tom"')
  const escaped = '&lt;b&gt;&quot;Tom&quot;&lt;/b&gt;'
  t.match(made.html, `<p>${escaped}</p><a href="#" title="${escaped}">go</a><div><b>"Tom"</b></div>`)
})

// proves: Email > template_id | template_data; decisions: Email > html and template_id both given
t.test('a template is sent with its html, and what the request says goes before it', async t => {
  const { template, mail, patch } = await open(t)
  const id = await template('<h1>Hi {{name}}</h1>')
  const made = await mail({ template_id: id.toUpperCase(), template_data: { name: 'Ann' } })
  t.match(made.html, '<h1>Hi Ann</h1>')
  t.match(made.text, /^Hi Ann\n/, 'the text is made of what was filled in')
  const own = await mail({
    template_id: id,
    html: '<p>Own {{name}}</p>',
    text: 'Own text',
    template_data: { name: 'x' },
  })
  t.match(own.html, '<p>Own x</p>')
  t.equal(own.text?.trim(), 'Own text')
  await patch(`/api/v1/templates/${id}`, { html: '<h1>Second</h1>' })
  t.match((await mail({ template_id: id })).html, '<h1>Second</h1>')
})

// proves: Email > template_id | 3; Errors > template_not_found
// answers: POST /email/send: template_not_found
t.test('an unknown, deleted or foreign template is refused in the documented order', async t => {
  const { template, send, batch, remove, command, post } = await open(t)
  const missing = { status: 404, body: { error: { code: 'template_not_found', path: 'template_id' } } }
  const gone = await template('<p>x</p>')
  t.match(await send({ template_id: gone }), { status: 200 })
  await remove(`/api/v1/templates/${gone}`)
  const { id: workspace } = await command<{ id: string }>('workspace', 'create', 'Other')
  const other = await command<{ key: string }>('key', 'create', '--workspace', workspace, '--name', 'k')
  const foreign = String(
    (await post('/api/v1/templates', { name: 'T', html: '<p>x</p>' }, { key: other.key })).body.data.id,
  )
  for (const id of [gone, foreign, UNKNOWN, 'no-uuid']) t.match(await send({ template_id: id }), missing, id)
  t.match(await send({ template_id: UNKNOWN, from_email: undefined }), {
    status: 400,
    body: { error: { code: 'missing_from_email' } },
  })
  t.match(await send({ template_id: UNKNOWN, html: '{{#if}}' }), { status: 400 }, 'form goes first')
  t.match(await batch([{ text: 'x' }, { template_id: foreign }]), {
    status: 202,
    body: { data: { sent: 1, failed: 1, errors: [{ index: 1, code: 'template_not_found' }] } },
  })
})

// proves: decisions: Rendering > Values merged into HTML are
t.test('what cannot be read or filled in is refused with its place, and nothing is accepted', async t => {
  const { send, batch, template, rowCounts } = await open(t)
  const loops = '{{#each list}}{{#each this.more}}{{this}}{{/each}}{{/each}}'
  const id = await template(`<p>${loops.repeat(3)}</p>`)
  const before = rowCounts()
  t.match(
    await send({ html: '<p>\n  {{#if a}}x</p>' }),
    fault('html', /^html: line 2, column 3: this #if has no \{\{\/if\}\}/),
  )
  t.match(await send({ text: 'Hi {{name' }), fault('text', /^text: line 1, column 4: /))
  t.match(await send({ subject: '{{#no}}', text: 'x' }), fault('subject', /^subject: line 1, column 1: /))
  t.match(await batch([{ text: 'x' }, { html: '{{/if}}' }]), fault('messages.1.html', /line 1, column 1/))
  const listOf = (length: number) =>
    Array.from({ length: 90 }, () => ({ more: Array<string>(length).fill('x') }))
  const list = listOf(90)
  t.match(
    await send({ template_id: id, template_data: { list } }),
    fault('template_data', /more than 20000 steps/),
  )
  t.match(
    await send({ html: '<p>{{a}}{{a}}{{a}}{{a}}{{a}}</p>', template_data: { a: 'x'.repeat(250_000) } }),
    fault('template_data', /longer than 1048576 characters/),
  )
  t.match(
    await send({ text: '{{a}}', template_data: { a: 'x'.repeat(262_144) } }),
    fault('template_data', /at most 256KB/),
  )
  t.match(
    await send({ text: '{{a}}', template_data: { list: listOf(120) } }),
    fault('template_data', /at most 10000 values/),
  )
  t.match(
    await send({ text: '{{a.b}}', template_data: { a: { b: ['a\0b'] } } }),
    fault('template_data', /contains a NUL character/),
  )
  for (const line of ['a\r\nBcc: eve@evil.test', 'a\x7f'])
    t.match(
      await send({ subject: 'Hi {{name}}', text: 'x', template_data: { name: line } }),
      fault('template_data', /into the subject/),
    )
  t.same(rowCounts(), before)
})

t.test('a mail that passes its bounds because of what the contact has fails and says so', async t => {
  const { contact, send, messageOnce } = await open(t)
  await contact({ email: 'ann@one.test', attributes: { much: 'x'.repeat(20_000) } })
  const { body } = await send({ text: '{{attributes.much}}'.repeat(60) })
  const id = String(body.data.results[0].message_id)
  t.match(await messageOnce(id, 'failed'), {
    last_reply: 'the message could not be built: the output is longer than 1048576 characters',
  })
})

t.test(
  'an empty subject is refused where data decides it, and fails the mail where the contact does',
  async t => {
    const { send, post, get, messageOnce } = await open(t)
    for (const template_data of [undefined, { title: '' }, { title: '<b></b>' }])
      t.match(
        await send({ subject: '{{title}}', text: 'x', ...(template_data && { template_data }) }),
        fault('subject', /^the subject is empty after merging: template_data has no value for title/),
      )
    t.equal((await send({ subject: '{{title}}', text: 'x', template_data: { title: 'News' } })).status, 200)
    t.equal((await send({ subject: '{{current_year}}', text: 'x' })).status, 200)
    const { body } = await send({ subject: '{{firstName}}', text: 'x' })
    const [{ message_id: id }] = body.data.results
    await messageOnce(id, 'failed')
    t.match((await get(`/api/v1/email/${id}`)).body.data, {
      last_reply: /subject is empty after merging/,
    })
    await post('/api/v1/contacts', { email: 'ann@one.test', first_name: 'Ann' })
    const again = await send({ subject: '{{firstName}}', text: 'x' })
    await messageOnce(again.body.data.results[0].message_id, 'delivered')
  },
)

// proves: decisions: Rendering > Values merged into HTML are
t.test('a line break of a contact never ends the subject', async t => {
  const { contact, mail } = await open(t)
  await contact({ email: 'ann@one.test', attributes: { line: 'a\r\nBcc: eve@evil.test' } })
  const { subject, headers } = await mail({ subject: 'Hi {{attributes.line}}', text: 'x' })
  t.equal(subject, 'Hi a Bcc: eve@evil.test')
  t.notOk(headers.has('bcc'))
})

// proves: Content rendering rules > Every key of template_data is
t.test('each message of a batch is filled in with its own data', async t => {
  const { batch, template, received, get } = await open(t)
  const id = await template('<p>Hi {{name}}</p>')
  const { body } = await batch([
    { template_id: id, template_data: { name: 'Ann' } },
    { to: 'bob@two.test', template_id: id, template_data: { name: 'Bob' } },
    { to: 'carl@two.test', text: '{{name|nobody}}' },
  ])
  t.match(body.data, { sent: 3, failed: 0 })
  const { results } = (await get(`/api/v1/email/batch/${String(body.data.batch_id)}`)).body.data
  const [ann, bob, carl] = await Promise.all(
    (results as { message_id: string }[]).map(one => received(one.message_id)),
  )
  t.match(ann!.html, '<p>Hi Ann</p>')
  t.match(bob!.html, '<p>Hi Bob</p>')
  t.equal(carl!.text?.trim(), 'nobody')
})

t.test(
  'a scheduled mail is filled in when it leaves: template and data as accepted, contacts as they are',
  async t => {
    const { contact, template, send, received, get, patch, remove, clock } = await open(t)
    const ann = await contact({ email: 'ann@one.test', first_name: 'Ann' })
    const bob = await contact({ email: 'bob@one.test', first_name: 'Bob' })
    const id = await template('<p>{{first_name|friend}}, {{n}}</p>')
    const { body } = await send({
      to: ['ann@one.test', 'bob@one.test'],
      template_id: id,
      template_data: { n: 1 },
      send_at: '2026-01-05T10:05:00Z',
    })
    await patch(`/api/v1/contacts/${ann}`, { first_name: 'Anna' })
    await remove(`/api/v1/contacts/${bob}`)
    await patch(`/api/v1/templates/${id}`, { html: '<p>later</p>' })
    await clock.advance(300_000)
    const group = await get(`/api/v1/email/${String(body.data.message_id)}/status`)
    const recipients = group.body.data.recipients as { message_id: string }[]
    const mails = await Promise.all(recipients.map(one => received(one.message_id)))
    t.match(mails[0]!.html, '<p>Anna, 1</p>')
    t.match(mails[1]!.html, '<p>friend, 1</p>')
  },
)

t.test('a repeated request is answered as the first was, whatever became of the template', async t => {
  const { template, post, remove, key, rowCounts } = await open(t)
  const id = await template('<p>Hi {{name}}</p>')
  const body = { ...good, template_id: id, template_data: { name: 'Ann' } }
  const send = (fields: object = {}) =>
    post('/api/v1/email/send', { ...body, ...fields }, { key, headers: { 'Idempotency-Key': 'one' } })
  const first = await send()
  await remove(`/api/v1/templates/${id}`)
  const messages = rowCounts()['messages']
  t.match(await send(), { status: 200, body: first.body })
  t.match(await send({ template_data: { name: 'Bob' } }), { status: 409 })
  t.equal(rowCounts()['messages'], messages)
})

t.test('a sandbox reads live templates and its own, and live mail none of the sandbox', async t => {
  const { template, send, makeKey, contact } = await open(t)
  const sandbox = await makeKey('--sandbox')
  const [live, tried] = [await template('<p>{{name}}</p>'), await template('<p>tried</p>', sandbox)]
  await contact({ email: 'ann@one.test' })
  t.match(await send({ template_id: live }, sandbox), { status: 200 })
  t.match(await send({ template_id: tried }, sandbox), { status: 200 })
  t.match(await send({ template_id: tried }), {
    status: 404,
    body: { error: { code: 'template_not_found' } },
  })
  t.match(await send({ html: '{{#if}}' }, sandbox), { status: 400 })
})

// proves: What the service does > Email compliance the service checks
// proves: Content rendering rules > System tags {{unsubscribe_url}} {{preferences_url}} {{company_name}}
// proves: Content rendering rules > contains `{{unsubscribe_url}}` and a physical address
// proves: Content rendering rules > contains `{{unsubscribe_url}}` but no address | no `{{unsubscribe_url}}`
// proves: decisions: Email > Compliance "contains an address" means
t.test('the footer is as much as the mail lacks, with links of this message', async t => {
  const { mail, command, workspaceId } = await open(t)
  await command('workspace', 'set', workspaceId, 'company_name=Birds & Co', 'company_address=1 Main St')
  const added = await mail({ html: '<html><body><p>x</p></body></html>' })
  const html = String(added.html)
  t.match(
    html,
    /<p>x<\/p><table[^]*Birds &amp; Co, 1 Main St[^]*Sent with Postroad<\/td><\/tr><\/table><img [^>]+><\/body><\/html>/,
  )
  const [, unsubscribe = '', preferences = ''] =
    /href="(https:[^"]+\/u\/[^"]+)"[^]*href="(https:[^"]+\/p\/[^"]+)"/.exec(html) ?? []
  t.ok(unsubscribe && preferences, html)
  t.match(added.text, `Unsubscribe <${unsubscribe}>`)
  const list = added.headers.get('list') as { unsubscribe: { url: string; mail: string } } | undefined
  t.equal(list?.unsubscribe.url, unsubscribe)
  t.match(list?.unsubscribe.mail, /^unsubscribe\+u1-/)
  const completed = String((await mail({ html: '<p>x <a href="{{unsubscribe_url}}">Stop</a></p>' })).html)
  t.match(completed, /Stop<\/a><\/p><table[^]*Birds &amp; Co, 1 Main St/)
  t.notMatch(completed, 'Email preferences')
  const kept = String(
    (await mail({ html: '<p><a href="{{unsubscribe_url}}">Stop</a> {{company_address}}</p>' })).html,
  )
  t.match(kept, /1 Main St<\/p><table[^]*Sent with Postroad/)
  t.notMatch(kept, 'Birds')
  const other = String((await mail({ to: 'bob@two.test', html: '<p>x</p>' })).html)
  t.notMatch(other, unsubscribe, 'every recipient has individual links')
  const text = await mail({ text: 'No footer.' })
  t.equal(text.text?.trim(), 'No footer.')
  t.notOk(text.headers.has('list'))
  t.notOk(text.html)
})

// proves: decisions: Email > Compliance "contains an address" means
t.test('marketing tells how to unsubscribe in its header, whatever is in it', async t => {
  const { mail, command, workspaceId } = await open(t)
  await command('workspace', 'set', workspaceId, 'marketing=true')
  const { headerLines } = await mail({ text: 'Sale' })
  const lines = headerLines.map(({ line }) => line).join('\n')
  t.match(lines, /List-Unsubscribe: <https:[^]*<mailto:unsubscribe\+/)
  t.match(lines, 'List-Unsubscribe-Post: List-Unsubscribe=One-Click')
})

// proves: decisions: Email > Compliance "contains an address" means
t.test('signatures are over what was filled in, and over List-Unsubscribe', async t => {
  const { contact, command, workspaceId, received, send } = await open(t)
  const domain = await command<PublishedDomain>(
    'domain',
    'add',
    'sender.test',
    '--workspace',
    workspaceId,
    '--vouch',
  )
  await contact({ email: 'ann@one.test', first_name: 'Änn' })
  const { body } = await send({ html: '<p>{{first_name}}</p>' })
  const { raw, html } = await received(String(body.data.results[0].message_id))
  t.match(html, 'Änn')
  const verdicts = await dkimVerdicts(raw, dkimZone(domain))
  t.ok(verdicts.length > 0 && verdicts.every(verdict => verdict.endsWith(' pass')), verdicts.join(', '))
  const changed = Buffer.from(
    raw.toString('latin1').replace('List-Unsubscribe: <https', 'List-Unsubscribe: <httpx'),
    'latin1',
  )
  t.ok((await dkimVerdicts(changed, dkimZone(domain))).every(verdict => !verdict.endsWith(' pass')))
})

t.test('message log, events and bounces name the workspace of a mail', async t => {
  const { contact, send, get, dataDir, makeKey, post, messageOnce } = await open(t)
  const ann = await contact({ email: 'ann@one.test' })
  const { body } = await send({ to: ['ANN@one.test', 'bob@two.test'], text: 'x' })
  const ids = (body.data.results as { message_id: string }[]).map(one => one.message_id)
  t.match((await get(`/api/v1/email/${ids[0]!}`)).body.data, { contact_id: ann, template_id: null })
  t.equal((await get(`/api/v1/email/${ids[1]!}`)).body.data.contact_id, null)
  const { body: log } = await get('/api/v1/email')
  await messageOnce(ids[0]!, 'delivered')
  t.same((log.data as { contact_id: unknown }[]).map(one => one.contact_id).sort(), [ann, null])
  const sandbox = await makeKey('--sandbox')
  const { body: made } = await post('/api/v1/contacts', { email: 'bounced@simulator.test' }, { key: sandbox })
  await send({ to: 'bounced@simulator.test', text: 'x' }, sandbox)
  const bounces = async () => (await get('/api/v1/bounces', sandbox)).body.data as { contact_id: string }[]
  await until('the bounce', async () => (await bounces()).length > 0)
  t.match(await bounces(), [{ contact_id: made.data.id as string }])
  const database = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  t.teardown(() => database.close())
  const told = database
    .prepare("select kind, payload from events where kind like 'email.%' and message_id = ? order by seq")
    .all(ids[0]) as { kind: string; payload: string }[]
  t.ok(told.length > 1)
  for (const { kind, payload } of told) t.match(JSON.parse(payload), { contactId: ann }, kind)
})
