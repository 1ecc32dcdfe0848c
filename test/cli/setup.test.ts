/** Setting up: init, workspaces, keys, configuration, schema. */
import { appendFileSync } from 'node:fs'
import t from 'tap'
import { initialise, install } from '../support/program/process.js'
import { until } from '../support/until.js'

const mail = { to: 'ann@one.test', from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' }

t.test('init creates a workspace and shows its key once', async t => {
  const postroad = install(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const first = await postroad.json<{ workspace: { id: string }; key: { id: string; key: string } }>('init')
  t.match(first, { workspace: { name: 'default' }, key: { key: /^ts_live_[A-Za-z0-9]{32,}$/ } })
  t.same(await postroad.json('init'), { workspace: first.workspace, key: null })
  const again = await postroad.run('init')
  t.match(again, { status: 0, out: /already set up/ })
  t.notMatch(again.out, 'ts_live_')
  t.equal((await postroad.json<unknown[]>('key', 'list')).length, 1)
  const server = await postroad.serve()
  t.match(await server.send(first.key.key, mail), { status: 200 })
})

t.test('what init made is in the activity log, with the user who ran it', async t => {
  const postroad = install(t, { env: { SUDO_USER: 'ann' } })
  await postroad.json('init', '--operator', 'ann@example.com')
  const entries = await postroad.json<{ action: string; actor: object }[]>('activity', 'list')
  const actor = { type: 'shell', name: 'ann' }
  for (const action of ['workspace.created', 'api_key.created', 'operator.created'])
    t.match(
      entries.find(one => one.action === action),
      { actor },
      action,
    )
})

t.test('init without --json prints a ready-to-paste request', async t => {
  const { status, out } = await install(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } }).run('init')
  t.equal(status, 0)
  const [, key] = /live key +(ts_live_\w+)/.exec(out) ?? []
  t.match(out, `Authorization: Bearer ${key ?? 'none'}`)
  t.match(out, /curl http:\/\/127\.0\.0\.1:\d+\/api\/v1\/email\/send/)
  t.match(out, 'capture list')
})

t.test('commands that init prints name the configuration file that it was given', async t => {
  const postroad = install(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const { out } = await postroad.run('init', '--config', postroad.configFile)
  for (const command of ['key create', 'capture list'])
    t.match(out, `${command} --config ${postroad.configFile}`)
  t.notMatch(out, 'config/dev.toml')
  const again = await postroad.run('init', '--config', postroad.configFile)
  t.match(again.out, `--name NAME --config ${postroad.configFile}`)
})

t.test('workspaces are created, listed, changed and removed', async t => {
  const postroad = await initialise(t)
  const made = await postroad.json<{ id: string }>('workspace', 'create', 'Shop & Co')
  t.match(made, {
    name: 'Shop & Co',
    default_from_email: null,
    hourly_limit: 1_000,
    daily_limit: 10_000,
    timezone: 'UTC',
  })
  const changes = ['name=Shop', 'default_from_email=a@shop.test', 'hourly_limit=0', 'attribution=false']
  const changed = {
    id: made.id,
    name: 'Shop',
    default_from_email: 'a@shop.test',
    hourly_limit: 0,
    attribution: false,
  }
  t.match(await postroad.json('workspace', 'set', made.id, ...changes), changed)
  t.match(await postroad.json('workspace', 'set', made.id, 'default_from_email='), {
    default_from_email: null,
  })
  for (const [pair, err] of [
    ['hourly_limit=many', /hourly_limit/],
    ['daily_limit=-1', /daily_limit/],
    ['default_from_email=nobody', /default_from_email/],
    ['default_from_email=jörg@shop.test', /ASCII/],
    ['default_from_name=a\nb', /control/],
    ['timezone=Mars/Olympus', /timezone/],
    ['name=', /name/],
  ] as const)
    t.match(await postroad.run('workspace', 'set', made.id, pair), { status: 1, err }, pair)
  t.match(await postroad.run('workspace', 'set', made.id, 'brand_colour=#112233'), {
    status: 2,
    err: /brand_colour.*brand_color/s,
  })
  const listed = await postroad.json<{ id: string; name: string }[]>('workspace', 'list')
  t.same(listed.map(({ name }) => name).sort(), ['Shop', 'default'])
  t.same(await postroad.json('workspace', 'remove', made.id, '--yes'), { success: true, held: 0 })
  await postroad.json('workspace', 'restore', made.id)
  const activities = await postroad.json<{ action: string; subject: string; changes: object }[]>(
    ...['activity', 'list', '--workspace', made.id],
  )
  t.same(
    activities.map(({ action }) => action),
    [
      'workspace.restored',
      'workspace.removed',
      'workspace.changed',
      'workspace.changed',
      'workspace.created',
    ],
  )
  t.match(activities.at(3), { changes: { hourly_limit: { before: 1000, after: 0 } } })
  t.same(await postroad.json('workspace', 'remove', made.id, '--yes'), { success: true, held: 0 })
  t.equal((await postroad.json<unknown[]>('workspace', 'list')).length, 1)
  t.match(await postroad.run('workspace', 'list'), { status: 0, out: /^ID +NAME/ })
})

t.test('a key is printed once, and listed without its secret part', async t => {
  const postroad = await initialise(t)
  const owner = ['--workspace', postroad.workspaceId]
  const options = [
    '--sandbox',
    '--permissions',
    'email:send, email:read',
    '--rate-limit',
    '5',
    '--email-rate-limit',
    '0',
  ]
  const made = await postroad.json<{ id: string; key: string }>(
    'key',
    'create',
    ...owner,
    '--name',
    'shop',
    ...options,
  )
  t.match(made, {
    name: 'shop',
    key: /^ts_test_[A-Za-z0-9]{32,}$/,
    is_sandbox: true,
    permissions: ['email:send', 'email:read'],
    type: 'custom',
    rate_limit: 5,
    email_rate_limit: 0,
    revoked_at: null,
  })
  const plain = await postroad.run('key', 'create', ...owner, '--name', 'plain')
  t.match(plain, { status: 0, out: /^ts_live_\w+\n$/, err: /^id [0-9a-f-]{36}\n$/ })
  const listed = await postroad.json<Record<string, unknown>[]>('key', 'list', ...owner)
  t.same(listed.map(({ name }) => name).sort(), ['first key', 'of the tests', 'plain', 'shop'])
  for (const text of [JSON.stringify(listed), (await postroad.run('key', 'list')).out]) {
    t.notMatch(text, made.key)
    t.notMatch(text, plain.out.trim())
  }
  t.match(await postroad.run('key', 'list', '--workspace', 'none'), { status: 1, err: /no workspace none/ })
})

t.test('a revoked key stops working in the running server', async t => {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const server = await postroad.serve()
  const options = ['--workspace', postroad.workspaceId, '--name', 'short', '--rate-limit', '0']
  const { id, key } = await postroad.json<{ id: string; key: string }>('key', 'create', ...options)
  t.match(
    await server.get('/api/v1/api-key/permissions', { key }),
    { status: 200 },
    'a new key works at once',
  )
  t.same(await postroad.json('key', 'revoke', id), { success: true, scheduled: 0, cancelled: 0 })
  await until('the key to stop working', async () => {
    const { status } = await server.get('/api/v1/api-key/permissions', { key })
    return status === 401
  })
  t.match(await server.send(postroad.key, mail), { status: 200 }, 'the others go on')
  t.match(await postroad.run('key', 'revoke', id), { status: 1 }, 'only once')
})

t.test('config check accepts a valid configuration and rejects an invalid one', async t => {
  const postroad = install(t)
  t.match(await postroad.run('config', 'check'), {
    status: 0,
    out: /^warning: line \d+: data_dir: .* does not exist yet[^]*\nok\n/,
    err: '',
  })
  t.match(await postroad.json('config', 'check'), { ok: true })
  postroad.writeConfig('[mta]\nprot = 25\n[log]\nlevel = "loud"')
  const { status, out, err } = await postroad.run('config', 'check')
  t.equal(status, 2)
  t.equal(out, '')
  t.match(err, /mta\.prot.*port/)
  t.match(err, 'log.level')
})

t.test('config show prints the effective configuration and hides passwords', async t => {
  const route =
    'domain = "*"\nhost = "relay.test"\nusername = "shop"\npassword = "hunter2-secret"\ntls = "verify"'
  const postroad = install(t, { toml: `[[mta.routes]]\n${route}`, env: { POSTROAD_LOG_LEVEL: 'warn' } })
  for (const args of [
    ['config', 'show'],
    ['config', 'show', '--json'],
  ]) {
    const { status, out } = await postroad.run(...args)
    t.equal(status, 0)
    t.match(out, 'relay.test')
    t.match(out, 'mx.postroad.test')
    t.match(out, /level = .{0,2}warn/, 'the environment counts')
    t.notMatch(out, 'hunter2')
  }
})

t.test('config reference describes every key', async t => {
  const { status, out } = await install(t).run('config', 'reference')
  t.equal(status, 0)
  for (const key of ['data_dir', 'shared_address', 'shutdown_grace', 'POSTROAD_MTA_RETRY_FIRST'])
    t.match(out, key)
})

t.test('migrate works only while the server is stopped', async t => {
  const postroad = await initialise(t)
  t.same(await postroad.json('migrate'), { success: true, applied: [], copy: null })
  const server = await postroad.serve()
  t.match(await postroad.run('migrate'), { status: 1, err: `process ${server.pid}` })
})

t.test("init beside a running server does not seal that server's signing keys", async t => {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const server = await postroad.serve()
  appendFileSync(postroad.configFile, `\n[secrets]\nkey = "${Buffer.alloc(32, 7).toString('base64')}"\n`)
  t.match(await postroad.run('init'), { status: 0 })
  const { body } = await server.send(postroad.key, mail)
  await server.messageOnce(postroad.key, String(body.data.results[0].message_id), 'delivered')
})
