/** A copy that is made beside the running server, read back, and put in place again. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import t from 'tap'
import { isServing, takeServeLock } from '../../src/db/sqlite/serve-lock.js'
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
    ['empty', /no signature: it is incomplete, no backup, or/],
  ] as const)
    t.match(await postroad.run('restore', join(folder, name), '--yes'), { status: 1, err }, name)
  for (const flags of [['--yes'], ['--yes', '--unsigned']])
    t.match(await postroad.run('restore', join(postroad.dataDir, 'postroad.db'), ...flags), {
      err: /no backup/,
    })

  const damaged = readFileSync(file)
  damaged.fill(0xff, damaged.length - 8_192, damaged.length - 4_096)
  writeFileSync(join(folder, 'damaged'), damaged)
  for (const flags of [['--yes'], ['--yes', '--unsigned']])
    t.match(await postroad.run('restore', join(folder, 'damaged'), ...flags), {
      status: 1,
      err: /damaged|malformed/,
    })
  truncateSync(file, damaged.length / 2)
  const { status, err } = await postroad.run('restore', file, '--yes')
  t.equal(status, 1)
  t.match(err, /the backup .* is incomplete or damaged: it has \d+ octets of \d+; .*use another backup/)
  t.notMatch(err, /-wal|--unsigned/, 'no advice for another case')
  t.same(postroad.rowCounts(), before)
})

t.test('a backup into a folder that does not exist says which, and what to do', async t => {
  const postroad = await initialise(t)
  const nowhere = join(t.testdir(), 'nowhere')
  t.match(await postroad.run('backup', join(nowhere, 'b')), {
    status: 1,
    err: new RegExp(`there is no folder ${nowhere} for the backup; create it`),
  })
})

t.test('the nightly unit deletes what killed backups left, and nothing that is being made', t => {
  const folder = t.testdir({
    'postroad-1.db.partial': '',
    'postroad-2.db.partial': '',
    'postroad-3.db': '',
    'by-hand.partial': '',
  })
  const dayBefore = new Date(Date.now() - 86_400_000)
  for (const name of ['postroad-1.db.partial', 'postroad-3.db', 'by-hand.partial'])
    utimesSync(join(folder, name), dayBefore, dayBefore)
  const unit = readFileSync('systemd/postroad-backup.service', 'utf8')
  for (const [, command = ''] of unit.matchAll(/^ExecStart(?:Pre)?=(\/usr\/bin\/find .*)$/gm))
    execFileSync('/bin/sh', ['-c', command.replace('/var/backups/postroad', folder)])
  t.same(readdirSync(folder).sort(), ['by-hand.partial', 'postroad-2.db.partial', 'postroad-3.db'])
  t.end()
})

t.test('a command that needs the data folder says which one to create', t => {
  const nowhere = join(t.testdir(), 'nowhere')
  t.throws(() => takeServeLock(nowhere), {
    message: /^data_dir .*nowhere does not exist; create it for the user/,
  })
  t.equal(isServing(nowhere), false)
  t.end()
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
  t.match(await postroad.run('restore', file, '--yes'), { status: 1, err: /damaged: its checksum/ })
  t.match(await postroad.run('restore', file, '--yes', '--unsigned'), {
    status: 1,
    err: /0 rows of api_keys in place of/,
  })
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
  t.notOk(existsSync(other.dataDir), 'nothing was begun')
  t.match(await other.run('restore', file, '--unsigned'), { status: 1, err: /secrets\.key/ })
  t.same(
    readdirSync(other.dataDir).filter(name => name.startsWith('postroad.db')),
    [],
    'no copy is left',
  )
  const right = install(t, { env: { POSTROAD_SECRETS_KEY: key } })
  t.match(await right.json('restore', file), { success: true })
})

const KEY = Buffer.alloc(32, 7).toString('base64')
const OTHER_KEY = Buffer.alloc(32, 8).toString('base64')

/** Opens a backup as its thief would, and changes it. */
function changeBackup(file: string, change: string): void {
  const handle = new BetterSqlite(file)
  handle.unsafeMode(true)
  handle.exec(change)
  handle.close()
}

t.test('a backup that was changed is noticed, whatever was changed', async t => {
  const postroad = await initialise(t, { env: { POSTROAD_SECRETS_KEY: KEY } })
  const file = join(t.testdir(), 'backup')
  t.match(await postroad.run('backup', file), { status: 0, out: /signed with secrets\.key/ })
  const original = readFileSync(file)
  const before = postroad.rowCounts()
  const size = original.length
  for (const at of [
    150,
    4_096,
    Math.floor(size / 3),
    Math.floor(size / 2),
    size - 300,
    size - 10,
    size - 161,
  ]) {
    const flipped = Buffer.from(original)
    flipped[at] = (flipped[at] ?? 0) ^ 1
    writeFileSync(file, flipped)
    t.match(await postroad.run('restore', file, '--yes'), { status: 1, err: /backup: it / }, `octet ${at}`)
  }
  writeFileSync(file, original)
  changeBackup(file, "update api_keys set revoked_at = null, name = 'thief'")
  t.match(await postroad.run('restore', file, '--yes'), {
    status: 1,
    err: /changed since it was made|no signature/,
  })
  // The signature of another backup, or of somebody without the key.
  writeFileSync(file, Buffer.concat([readFileSync(file), original.subarray(-160)]))
  t.match(await postroad.run('restore', file, '--yes'), { status: 1, err: /changed since it was made/ })
  t.same(postroad.rowCounts(), before)
  writeFileSync(file, original)
  t.match(await postroad.json('restore', file, '--yes'), { success: true })
})

t.test('a backup of another key, or without a signature, is restored only when told to', async t => {
  const env = { POSTROAD_SECRETS_KEY: KEY }
  const [mine, plain, foreign] = [
    await initialise(t, { env }),
    await initialise(t),
    await initialise(t, { env: { POSTROAD_SECRETS_KEY: OTHER_KEY } }),
  ]
  const folder = t.testdir()
  const backupOf = async (name: string, of: typeof mine) => {
    await of.json('backup', join(folder, name))
    return join(folder, name)
  }
  const unsigned = await backupOf('unsigned', plain)
  t.match(await plain.run('backup', join(folder, 'again')), {
    status: 0,
    out: /not signed, since secrets\.key/,
  })
  const older = join(folder, 'older')
  writeFileSync(older, readFileSync(unsigned).subarray(0, -160))
  for (const [file, reason] of [
    [await backupOf('foreign', foreign), /signed with another secrets\.key/],
    [unsigned, /it is not signed/],
    [older, /no signature/],
  ] as const) {
    const { status, err } = await mine.run('restore', file, '--yes')
    t.equal(status, 1)
    t.match(err, reason)
    t.match(err, /--unsigned/)
    t.match(await mine.json('restore', file, '--yes', '--unsigned'), { success: true })
  }
  t.match(
    await plain.json('restore', unsigned, '--yes'),
    { success: true },
    'without a key, the checksum is all',
  )
})

t.test('nothing that a backup brings runs before it is refused', async t => {
  const postroad = await initialise(t)
  const before = postroad.rowCounts()
  const endless =
    'with recursive n(facts, name) as (select 1, 1 union all select facts + 1, name from n) select facts, name from n'
  for (const [change, reason] of [
    [`drop table backup_facts; create view backup_facts as ${endless}`, /view backup_facts was added/],
    [`create view harmless as ${endless}`, /view harmless was added/],
    [`alter table schema_migrations rename to old; create view schema_migrations as ${endless}`, /no backup/],
    [
      'create trigger t after insert on restore_holds begin update api_keys set revoked_at = null; end',
      /trigger t on restore_holds was added/,
    ],
    [
      'create trigger t after insert on schema_migrations begin update api_keys set revoked_at = null; end',
      /trigger t on schema_migrations was added/,
    ],
    [
      'create trigger t after update on schema_migrations_lock begin update api_keys set revoked_at = null; end',
      /trigger t on schema_migrations_lock was added/,
    ],
    [
      'create trigger t after insert on contact_search_data begin update api_keys set revoked_at = null; end',
      /cannot create triggers on shadow tables/,
    ],
  ] as const) {
    const file = join(t.testdir(), 'backup')
    await postroad.json('backup', file)
    changeBackup(file, change)
    const { status, err } = await postroad.run('restore', file, '--yes', '--unsigned')
    t.equal(status, 1)
    t.match(err, reason)
    t.same(postroad.rowCounts(), before)
  }
})
