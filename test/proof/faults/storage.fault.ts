/** Faults of the disk under a SQLite database. A full disk: `test/debian/full-disk.debian.ts`. */
import { mkdirSync, renameSync, rmSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { smallDisk } from '../../support/program/small-disk.js'
import { refusesPolitely } from '../../support/program/fault.js'
import { until } from '../../support/until.js'
import { healthReasons, openBusyServer } from './busy-server.js'

const isRoot = userInfo().uid === 0

t.test(
  'read-only disk: mail is refused for now and health fails; after a restart on the repaired disk all of it is delivered',
  { skip: !isRoot && 'needs root' },
  async t => {
    const disk = smallDisk(t, 96)
    const { postroad, server, flow, sink } = await openBusyServer(t, {
      onFolder: dataDir => disk.mountAt(dataDir),
    })
    if (!disk.turnReadOnly()) {
      await flow.stop()
      t.plan(0, 'this kernel cannot be told to find an error on a disk')
      return
    }
    await flow.refused()
    await until('health to say so', async () => (await server.get('/health')).status === 503)
    t.match((await healthReasons(server)).join(), /database_(failing|gone)/)
    refusesPolitely(t, flow)
    await server.end('SIGKILL')
    await flow.stop()
    disk.repair()
    const again = await postroad.serve()
    await until('all accepted mail to arrive', () => flow.missing.length === 0, 60_000)
    t.comment(
      `accepted ${flow.accepted.size}, arrived ${sink.accepted.length}, repeated ${flow.repeated.length}`,
    )
    t.match(
      await again.send(postroad.key, {
        to: 'z@d.test',
        from_email: 'a@sender.test',
        subject: 'S',
        text: 'T',
      }),
      {
        status: 200,
      },
    )
  },
)

for (const ending of ['', '-wal'])
  t.test(
    `the file postroad.db${ending} is moved away: mail is refused and nothing acknowledged is lost; once it is back, mail goes on without a restart`,
    async t => {
      const { postroad, server, flow, settle } = await openBusyServer(t)
      const file = join(postroad.dataDir, `postroad.db${ending}`)
      const aside = join(postroad.dataDir, 'aside')
      mkdirSync(aside)
      renameSync(file, join(aside, 'file'))
      await flow.refused()
      t.match(await server.get('/health'), { status: 503 })
      t.same(await healthReasons(server), ['database_gone'])
      await server.logged('database files missing')
      renameSync(join(aside, 'file'), file)
      await flow.more(60)
      await settle()
      refusesPolitely(t, flow)
      t.match(await server.get('/health'), { status: 200 })
      t.match(await server.end('SIGTERM'), { status: 0 })
    },
  )

t.test(
  'the database is deleted: nothing more is acknowledged, and the log says how to save the files',
  async t => {
    const { postroad, server, flow } = await openBusyServer(t)
    for (const ending of ['', '-wal', '-shm'])
      rmSync(join(postroad.dataDir, `postroad.db${ending}`), { force: true })
    await flow.refused()
    const accepted = flow.accepted.size
    await flow.refused()
    t.equal(flow.accepted.size, accepted, 'nothing is accepted any more')
    const line = await server.logged('database files missing')
    t.match(line['fix'], /\/proc\/\d+\/fd/)
    await flow.stop()
  },
)

/** As a slow disk does it: each sync takes so long, in place or beside. */
const SYNC_MS = 250
const SLOW_SYNC = `
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
const { fdatasync } = fs
fs.fdatasyncSync = () => { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${SYNC_MS}) }
fs.fdatasync = (descriptor, done) => setTimeout(() => fdatasync(descriptor, done), ${SYNC_MS})
syncBuiltinESMExports()`
const READ_LIMIT_MS = 200

t.test(
  `fsync takes ${SYNC_MS} ms: mail is accepted more slowly, and whoever reads is answered meanwhile`,
  async t => {
    const { server, flow, settle, postroad } = await openBusyServer(t, {
      flags: ['--import', `data:text/javascript,${encodeURIComponent(SLOW_SYNC)}`],
    })
    await flow.more(60)
    const times: number[] = []
    for (let read = 0; read < 40; read += 1) {
      const startedAt = performance.now()
      const { status } = await server.get('/api/v1/lists', { key: postroad.key })
      if (status !== 200) throw new Error(`a read was answered by ${status}`)
      times.push(performance.now() - startedAt)
    }
    const median = times.toSorted((one, other) => one - other)[times.length / 2] ?? NaN
    t.comment(`reads: median ${Math.round(median)} ms, most ${Math.round(Math.max(...times))} ms`)
    t.ok(median < READ_LIMIT_MS, 'reads do not wait for the disk')
    await settle()
    t.same(flow.refusals, [], 'nothing is refused')
    t.match(await server.get('/health'), { status: 200 })
  },
)
