/** A copy that is made beside the running server, read back, and put in place again. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t from 'tap'
import { initialise, install, routeTo } from '../support/program/process.js'
import { openSink } from '../support/smtp/sink.js'

/** A user id that is nobody's on any machine that tests run on. */
const NOBODY = 65_534

const letter = (to: string) => ({ to, from_email: 'me@sender.test', subject: 'Hello', text: 'Hello.\n' })

t.test('a backup of a busy server is restored elsewhere, held, and resumes when released', async t => {
  const sink = await openSink(t)
  sink.atRcpt = 'defer'
  const env = { ...routeTo(sink.port), POSTROAD_MTA_RETRY_FIRST: '2s' }
  const postroad = await initialise(t, { env })
  const server = await postroad.serve()
  await server.send(postroad.key, letter('ann@one.test'))
  await server.logged('message deferred')
  const file = join(t.testdir(), 'postroad.backup')
  const over = new AbortController()
  const busy = (async () => {
    while (!over.signal.aborted) await server.send(postroad.key, letter('bob@two.test'))
  })()
  const made = await postroad.spawn('backup', file)
  over.abort()
  await busy
  t.match(made, { status: 0, out: /verified[^]*messages/ })
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.same(readdirSync(t.testdirName), ['postroad.backup'], 'one file, and nothing beside it')
  t.match(await postroad.run('backup', file), { status: 1, err: /exists already/ })
  t.match(await postroad.run('restore', file, '--yes'), { status: 1, err: /another postroad serves/ })

  await server.end('SIGTERM')
  const other = install(t, { env: { ...env, POSTROAD_HTTP_LISTEN: '127.0.0.1:0' } })
  const restored = await other.json<{ held: boolean; former: string | null; rows: Record<string, number> }>(
    'restore',
    file,
  )
  t.match(restored, { held: true, former: null, rows: { messages: Number, workspaces: 1 } })
  sink.atRcpt = 'accept'
  const copy = await other.serve()
  t.match(await copy.get('/api/v1/email', { key: postroad.key }), { status: 200 }, 'the key works')
  // The queue is made to look at what was due before, and goes on to accept more.
  await other.json('queue', 'retry', '--all')
  await copy.send(postroad.key, letter('cid@two.test'))
  await copy.logged('message accepted')
  t.equal(sink.arrived.length, 0, 'nothing is sent')
  await other.json('queue', 'release', '--all')
  await other.json('queue', 'retry', '--all')
  await copy.logged('message delivered')
})

const skip =
  process.getuid?.() === 0 && canNobodyRead() ? false : 'needs root, and a checkout that everybody may read'

/** Folders above the program. */
function canNobodyRead(): boolean {
  for (let folder = process.cwd(); folder !== '/'; folder = dirname(folder))
    if ((statSync(folder).mode & 0o001) === 0) return false
  return true
}

t.test(
  'files that root creates by init, restore and migrate belong to the owner of the data folder',
  { skip },
  async t => {
    const postroad = install(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
    chmodSync(dirname(postroad.dataDir), 0o755)
    mkdirSync(postroad.dataDir, { mode: 0o700 })
    chownSync(postroad.dataDir, NOBODY, NOBODY)
    const owners = () =>
      new Set(
        readdirSync(postroad.dataDir, { recursive: true, encoding: 'utf8' }).map(
          name => statSync(join(postroad.dataDir, name)).uid,
        ),
      )
    t.match(await postroad.spawn('init'), { status: 0, err: '' })
    t.same(owners(), new Set([NOBODY]))
    // Nobody but root can read it.
    const file = join(t.testdir(), 'backup')
    t.match(await postroad.spawn('backup', file), { status: 0 })
    chmodSync(t.testdirName, 0o700)
    t.match(await postroad.spawn('restore', file, '--yes'), { status: 0, err: '' })
    t.match(await postroad.spawn('migrate'), { status: 0, err: '' })
    t.same(owners(), new Set([NOBODY]))
    t.equal(statSync(file).uid, 0, 'a backup is where root wanted it')
  },
)

t.test('restore asks for confirmation and keeps the previous data', async t => {
  const postroad = await initialise(t, { env: { POSTROAD_MTA_CAPTURE: 'true' } })
  const server = await postroad.serve()
  await server.end('SIGTERM')
  const file = join(t.testdir(), 'backup')
  await postroad.json('backup', file)
  await postroad.json('workspace', 'create', 'later')
  t.match(await postroad.run('restore', file), { status: 2, err: /replaces the database.*--yes/ })
  const { former } = await postroad.json<{ former: string }>('restore', file, '--yes')
  t.match(former, /postroad\.db\.before-restore-/)
  t.ok(existsSync(former))
  t.equal((await postroad.json<unknown[]>('workspace', 'list')).length, 1, 'as it was')
  t.match(await postroad.run('queue', 'list'), { err: /held since the restore/ })
})

t.test('an incomplete backup file changes nothing', async t => {
  const postroad = await initialise(t)
  const folder = t.testdir({ text: 'no database', empty: '' })
  const file = join(folder, 'backup')
  await postroad.json('backup', file)
  const before = postroad.rowCounts()
  for (const [name, err] of [
    ['none', /no file/],
    ['text', /damaged/],
    ['empty', /no backup/],
  ] as const)
    t.match(await postroad.run('restore', join(folder, name), '--yes'), { status: 1, err }, name)
  t.match(await postroad.run('restore', join(postroad.dataDir, 'postroad.db'), '--yes'), { err: /no backup/ })

  const damaged = readFileSync(file)
  damaged.fill(0xff, damaged.length - 8_192, damaged.length - 4_096)
  writeFileSync(join(folder, 'damaged'), damaged)
  t.match(await postroad.run('restore', join(folder, 'damaged'), '--yes'), {
    status: 1,
    err: /damaged|malformed/,
  })
  truncateSync(file, damaged.length / 2)
  t.match(await postroad.run('restore', file, '--yes'), { status: 1, err: /damaged/ })
  t.same(postroad.rowCounts(), before)
  t.match(await postroad.run('backup', join(folder, 'nowhere', 'b')), { status: 1, err: /nowhere/ })
})

t.test(
  'a backup that cannot be served is kept, reported, and refused before it replaces anything',
  async t => {
    const other = await initialise(t)
    const before = other.rowCounts()
    const files = readdirSync(other.dataDir)
    for (const [change, reason] of [
      [
        "insert into schema_migrations values ('9999-time-travel', '2026-01-05')",
        /written by a newer Postroad/,
      ],
      ['alter table campaigns drop column ab_test', /table campaigns differs/],
      [
        'create trigger spy after insert on messages begin delete from messages; end',
        /trigger spy on messages was added; drop what was added/,
      ],
    ] as const) {
      const postroad = await initialise(t)
      postroad.sql(change)
      const file = join(t.testdir(), 'backup')
      t.match(await postroad.run('backup', file), { status: 1, out: /verified/, err: /cannot be restored/ })
      const { status, err } = await other.run('restore', file, '--yes')
      t.equal(status, 1)
      t.match(err, /backup cannot be restored: the database/)
      t.match(err, reason)
      t.same(other.rowCounts(), before)
      t.same(readdirSync(other.dataDir), files)
    }
  },
)

t.test('a backup with missing rows is refused', async t => {
  const postroad = await initialise(t)
  const file = join(t.testdir(), 'backup')
  await postroad.json('backup', file)
  const handle = new BetterSqlite(file)
  handle.exec('delete from api_keys')
  handle.close()
  t.match(await postroad.run('restore', file, '--yes'), { status: 1, err: /0 rows of api_keys in place of/ })
})

t.test('a backup with sealed secrets requires the key they were sealed with', async t => {
  const key = Buffer.alloc(32, 7).toString('base64')
  const postroad = await initialise(t, { env: { POSTROAD_SECRETS_KEY: key } })
  const server = await postroad.serve()
  await server.end('SIGTERM')
  const file = join(t.testdir(), 'backup')
  await postroad.json('backup', file)
  const other = install(t)
  t.match(await other.run('restore', file), { status: 1, err: /secrets\.key/ })
  t.same(
    readdirSync(other.dataDir).filter(name => name.startsWith('postroad.db')),
    [],
    'no copy is left',
  )
  const right = install(t, { env: { POSTROAD_SECRETS_KEY: key } })
  t.match(await right.json('restore', file), { success: true })
})
