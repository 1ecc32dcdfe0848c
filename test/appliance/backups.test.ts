/** Backups by the admin API, and by the command line of another machine. */
import { readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readBackup } from '../../src/db/sqlite/backup-file.js'
import { openTestAppliance } from '../support/program/appliance.js'
import { tokenWith } from '../support/program/operators.js'
import { until } from '../support/until.js'

const BACKUPS = '/api/admin/v1/backups'

t.test('a backup is made beside the running server, listed, downloaded and deleted', async t => {
  const postroad = await openTestAppliance(t)
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
