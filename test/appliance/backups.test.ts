/** Backups by the admin API, and by the command line of another machine. */
import { closeSync, mkdirSync, openSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readBackup } from '../../src/db/sqlite/backup-file.js'
import { checkBackup } from '../../src/db/sqlite/backup-signature.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { install } from '../support/program/process.js'
import { until } from '../support/until.js'

const BACKUPS = '/api/admin/v1/backups'
const KEY = Buffer.alloc(32, 7)

t.test('a backup is made beside the running server, signed, listed, downloaded and deleted', async t => {
  const postroad = await openTestAppliance(t, { env: { POSTROAD_SECRETS_KEY: KEY.toString('base64') } })
  const operator = { key: await tokenWith(postroad, 'operator') }
  const viewer = { key: await tokenWith(postroad, 'viewer') }
  t.match(await postroad.post(BACKUPS, '', viewer), { status: 403 })
  t.match(await postroad.get(BACKUPS, viewer), { status: 200, body: { data: [] } })
  const started = await postroad.post(BACKUPS, '', operator)
  t.match(started, { status: 202, body: { data: { state: 'running', size: null } } })
  const { name } = started.body.data as { name: string }
  t.match(await postroad.post(BACKUPS, '', operator), { status: 409 }, 'one at a time')
  const done = await until('the backup to be complete', async () => {
    const [found] = (await postroad.get(BACKUPS, viewer)).body.data as { state: string; size: number }[]
    return found?.state === 'running' ? undefined : found
  })
  t.match(done, { name, state: 'complete', progress: 1, error: null })
  t.same(readdirSync(join(postroad.dataDir, 'backups')), [name])
  t.equal(statSync(join(postroad.dataDir, 'backups', name)).mode & 0o077, 0, 'for nobody else')

  const download = (key: string) =>
    fetch(`${postroad.baseUrl}${BACKUPS}/${name}`, { headers: { Authorization: `Bearer ${key}` } })
  t.equal((await download(viewer.key)).status, 403)
  const file = join(t.testdir(), 'copy.db')
  writeFileSync(file, Buffer.from(await (await download(operator.key)).arrayBuffer()))
  t.equal(statSync(file).size, done.size)
  t.match(readBackup(file).rows, { workspaces: 1 })
  const descriptor = openSync(file, 'r')
  t.teardown(() => {
    closeSync(descriptor)
  })
  t.match(checkBackup(descriptor, KEY), { isSigned: true })

  t.match(await postroad.delete(`${BACKUPS}/${name}`, operator), { status: 200 })
  t.match(await postroad.delete(`${BACKUPS}/${name}`, operator), { status: 404 })
  t.match(await postroad.get(BACKUPS, viewer), { body: { data: [] } })
})

t.test('a name never leads out of the folder of backups', async t => {
  const postroad = await openTestAppliance(t)
  const operator = { key: await tokenWith(postroad, 'owner') }
  for (const name of ['..%2fpostroad.db', '%2e%2e%2fpostroad.db', 'postroad.db', 'control.sock', '..%5cx'])
    for (const method of ['get', 'delete'] as const) {
      const { status } = await postroad[method](`${BACKUPS}/${name}`, operator)
      t.ok([404, 422].includes(status) || status === 400, `${name}: ${status}`)
    }
  t.ok(statSync(join(postroad.dataDir, 'postroad.db')).isFile())
})

t.test('backup of a remote appliance is downloaded and verified, and leaves nothing there', async t => {
  const postroad = await openTestAppliance(t)
  const remote = ['--server', postroad.baseUrl, '--token', await tokenWith(postroad, 'operator')]
  const file = join(t.testdir(), 'remote.backup')
  t.match(await postroad.json('backup', file, ...remote), { file, rows: { workspaces: 1 } })
  t.match(readBackup(file).rows, { workspaces: 1 })
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.same(readdirSync(t.testdirName), ['remote.backup'])
  t.same(readdirSync(join(postroad.dataDir, 'backups')), [])
  t.match(await postroad.run('backup', file, ...remote), { status: 1, err: /exists already/ })
})

const namesIn = (dataDir: string) => readdirSync(join(dataDir, 'backups')).sort()

t.test('backups are made on schedule, and only the newest are kept', async t => {
  const postroad = await openTestAppliance(t, {
    toml: '[backup]\nschedule = "30 10 * * *"\nkeep = 2\n',
    onFolder: dataDir => {
      mkdirSync(join(dataDir, 'backups'), { recursive: true })
      for (const day of ['01', '02', '03'])
        writeFileSync(join(dataDir, 'backups', `postroad-2026-01-${day}T10-30-00-000Z.db`), 'old')
      writeFileSync(join(dataDir, 'backups', 'by-hand.db'), 'of the operator')
    },
  })
  const job = async () =>
    (await postroad.json<{ name: string; running: boolean }[]>('jobs')).find(({ name }) => name === 'backup')
  t.match(await job(), { schedule: '30 10 * * *' })
  await postroad.clock.advance(31 * 60_000)
  const names = await until('the backup of today', () => {
    const found = namesIn(postroad.dataDir)
    return found.length === 3 && found[2]?.startsWith('postroad-2026-01-05T10-3') && found
  })
  t.same(names.slice(0, 2), ['by-hand.db', 'postroad-2026-01-03T10-30-00-000Z.db'])
  t.match(readBackup(join(postroad.dataDir, 'backups', names[2] ?? '')).rows, { workspaces: 1 })
  await until('the job to end', async () => (await job())?.running === false)
  t.match(await job(), { last_ended_at: String, last_error: null })
  const [first] = postroad.log.lines.filter(({ event }) => event === 'old backup deleted')
  t.match(first, { fields: { name: 'postroad-2026-01-02T10-30-00-000Z.db' } })
})

t.test('a backup that fails deletes none', async t => {
  const postroad = await openTestAppliance(t, { toml: '[backup]\nkeep = 1\n' })
  const operator = { key: await tokenWith(postroad, 'operator') }
  mkdirSync(join(postroad.dataDir, 'backups'), { recursive: true })
  const old = 'postroad-2026-01-03T10-30-00-000Z.db'
  writeFileSync(join(postroad.dataDir, 'backups', old), 'old')
  postroad.disk.free = 0
  t.match(await postroad.post(BACKUPS, '', operator), { status: 503 })
  t.same(namesIn(postroad.dataDir), [old])
})

t.test('a backup that restore would refuse is kept and logged with the reason, and deletes none', async t => {
  const postroad = await openTestAppliance(t, { toml: '[backup]\nkeep = 1\n' })
  const operator = { key: await tokenWith(postroad, 'operator') }
  mkdirSync(join(postroad.dataDir, 'backups'), { recursive: true })
  const old = 'postroad-2026-01-03T10-30-00-000Z.db'
  writeFileSync(join(postroad.dataDir, 'backups', old), 'old')
  postroad.sql('create trigger spy after insert on messages begin delete from messages; end')
  const { name } = (await postroad.post(BACKUPS, '', operator)).body.data as { name: string }
  const warning = await until('the warning', () =>
    postroad.log.lines.find(({ event }) => event === 'backup cannot be restored'),
  )
  t.match(warning, { fields: { name, reason: /trigger spy on messages was added/ } })
  t.same(namesIn(postroad.dataDir), [old, name])
})

t.test('a schedule that is no cron expression is refused', async t => {
  const { status, err } = await install(t, { toml: '[backup]\nschedule = "daily"\n' }).run('config', 'check')
  t.equal(status, 2)
  t.match(err, /backup\.schedule.*cron expression/)
})
