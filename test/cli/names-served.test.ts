/** Names with control characters: refused by every way in, and shown as escapes by every command if they are stored all the same. */
import t from 'tap'
import { runCli } from '../../src/cli/program.js'
import { systemWorld } from '../../src/world/world.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'

const ESCAPE = 'Shop\x1b]0;owned\x07\x9b2J\u202e'
const EVERYBODY = { match: 'all', rules: [{ field: 'email', operator: 'is_set' }] }
const TEMPLATE = { name: 'News', html: '<p>Hi {{company_address}} {{unsubscribe_url}}</p>' }
/** All but line ends. */
// eslint-disable-next-line no-control-regex -- what terminals obey
const OBEYED = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/

t.test('every way in refuses names with control characters', async t => {
  const postroad = await openTestAppliance(t)
  const { workspaceId } = postroad
  const owned = ['--workspace', workspaceId]
  for (const args of [
    ['workspace', 'create', ESCAPE],
    ['workspace', 'set', workspaceId, `name=${ESCAPE}`],
    ['workspace', 'set', workspaceId, `company_name=${ESCAPE}`],
    ['key', 'create', ...owned, '--name', ESCAPE],
    ['operator', 'add', 'ann@x.example', '--role', 'viewer', '--name', ESCAPE],
    ['domain', 'add', ESCAPE, ...owned],
  ]) {
    const { status, err } = await postroad.run(...args)
    t.not(status, 0, args.join(' '))
    t.match(err, /control characters|domain/)
    t.notMatch(err, OBEYED)
  }
  const key = await postroad.makeKey()
  const token = await tokenWith(postroad, 'owner')
  const [list, tag, template] = [
    await postroad.post('/api/v1/lists', { name: 'Friends' }, { key }),
    await postroad.post('/api/v1/tags', { name: 'vip' }, { key }),
    await postroad.post('/api/v1/templates', TEMPLATE, { key }),
  ].map(({ body }) => String(body.data.id))
  const structure = { blocks: [{ id: 'b1', type: 'text', content: { html: '<p>Hi</p>' } }] }
  for (const [method, path, body] of [
    ['post', '/api/v1/lists', { name: ESCAPE }],
    ['patch', `/api/v1/lists/${list ?? ''}`, { name: ESCAPE }],
    ['post', '/api/v1/tags', { name: ESCAPE }],
    ['patch', `/api/v1/tags/${tag ?? ''}`, { name: ESCAPE }],
    ['put', '/api/v1/contacts', { email: 'ann@x.example', tags: [ESCAPE] }],
    ['post', '/api/v1/segments', { name: ESCAPE, conditions: EVERYBODY }],
    ['post', '/api/v1/templates', { name: ESCAPE, html: '<p>Hi</p>' }],
    ['post', '/api/v1/saved-blocks', { name: ESCAPE, json_structure: structure }],
    ['post', '/api/v1/forms', { name: ESCAPE }],
    ['post', '/api/v1/campaigns', { name: ESCAPE, subject: 'Hi', template_id: template, list_id: list }],
    ['post', '/api/v1/automations', { name: ESCAPE, trigger_type: 'contact_created', steps: [] }],
    ['patch', '/api/admin/v1/me', { name: ESCAPE }],
    ['post', '/api/admin/v1/me/tokens', { name: ESCAPE }],
  ] as const) {
    const by = { key: path.startsWith('/api/admin') ? token : key }
    const { status, body: answer } = await postroad[method](path, body, by)
    const refusal = { code: 'validation_error', message: /control characters/ }
    if (path.startsWith('/api/admin')) t.ok(status >= 400, `${path}: ${status}`)
    else t.match({ status, answer }, { status: 400, answer: { error: refusal } }, path)
  }
})

t.test('names that are stored all the same obey nobody', async t => {
  const postroad = await openTestAppliance(t)
  const { workspaceId, sql } = postroad
  const key = await postroad.makeKey()
  await tokenWith(postroad, 'owner')
  const post = async (path: string, body: object) => {
    const answer = await postroad.post(`/api/v1${path}`, body, { key })
    t.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
    return answer
  }
  const list = String((await post('/lists', { name: 'Friends' })).body.data.id)
  await post('/tags', { name: 'vip' })
  await post('/segments', { name: 'All', conditions: EVERYBODY })
  await post('/contacts', { email: 'ann@x.example', first_name: 'Ann', list_id: list })
  const template = String((await post('/templates', TEMPLATE)).body.data.id)
  await post('/campaigns', { name: 'News', subject: 'Hi', template_id: template, list_id: list })
  await post('/automations', { name: 'Welcome', trigger_type: 'contact_created', steps: [] })
  await post('/webhooks/triggers', { event: 'contact.created', targetUrl: 'https://hooks.example/' })
  await post('/email/send', {
    to: 'ann@x.example',
    from_email: 'a@b.example',
    subject: 'Hello',
    text: 'Hello',
  })
  await postroad.json('suppress', 'add', 'bob@x.example', '--workspace', workspaceId)
  const hostile = `'${ESCAPE}\nfake row'`
  for (const [table, column] of [
    ['workspaces', 'name'],
    ['workspaces', 'company_name'],
    ['api_keys', 'name'],
    ['operators', 'name'],
    ['operator_tokens', 'name'],
    ['activities', 'subject'],
    ['lists', 'name'],
    ['tags', 'name'],
    ['segments', 'name'],
    ['campaigns', 'name'],
    ['automations', 'name'],
    ['contacts', 'first_name'],
    ['message_contents', 'subject'],
  ])
    sql(`update ${table ?? ''} set ${column ?? ''} = ${hostile}`)
  const owned = ['--workspace', workspaceId]
  for (const args of [
    ['workspace', 'list'],
    ['workspace', 'show', workspaceId],
    ['key', 'list'],
    ['operator', 'list'],
    ['activity', 'list'],
    ['domain', 'list'],
    ['lists', 'list', ...owned],
    ['tags', 'list', ...owned],
    ['segments', 'list', ...owned],
    ['contacts', 'list', ...owned],
    ['contacts', 'show', 'ann@x.example', ...owned],
    ['campaign', 'list', ...owned],
    ['automation', 'list', ...owned],
    ['webhook', 'list', ...owned],
    ['suppress', 'list', ...owned],
    ['message', 'list'],
    ['queue', 'list'],
    ['jobs'],
    ['nodes'],
  ])
    for (const more of [[], ['--json']]) {
      const { status, out, err } = await postroad.run(...args, ...more)
      t.equal(status, 0, `${args.join(' ')}: ${err}`)
      t.notMatch(out, OBEYED, args.join(' '))
      t.notMatch(out, /^fake row/m, `${args.join(' ')}: a name is within its row`)
      if (more.length > 0) t.ok(JSON.parse(out))
    }
  const { out } = await postroad.run('workspace', 'list')
  t.match(out, 'Shop\\u001b]0;owned\\u0007\\u009b2J\\u202e\\nfake row')
  const refused = await postroad.run('workspace', 'remove', workspaceId)
  t.match(refused, { status: 2 })
  t.notMatch(refused.err, OBEYED)
})

t.test('exports are changed on a terminal only', async t => {
  const postroad = await openTestAppliance(t)
  const key = await postroad.makeKey()
  await postroad.post('/api/v1/contacts', { email: 'ann@x.example', first_name: 'Ann' }, { key })
  postroad.sql("update contacts set first_name = 'A\x1b[31mnn'")
  const exported = async (isTerminal: boolean) => {
    let out = ''
    await runCli(['contacts', 'export', '--workspace', postroad.workspaceId], {
      env: postroad.environment,
      world: systemWorld(),
      isTerminal,
      print: text => (out += `${text}\n`),
      complain: text => (out += text),
    })
    return out
  }
  t.match(await exported(false), 'A\x1b[31mnn')
  t.match(await exported(true), 'A\\u001b[31mnn')
})
