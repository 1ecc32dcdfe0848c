/**
 * What an operator sees of an upgrade from the oldest version: what it would do, the copy from before, how far it is, and that it goes on
 * after a kill. Some eight seconds.
 */
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { CONFIG_SCHEMA } from '../../src/appliance/resources.js'
import { loadConfig } from '../../src/config/load.js'
import { MIGRATIONS } from '../../src/db/migrations.js'
import { takeServeLock } from '../../src/db/sqlite/serve-lock.js'
import { POSTGRES_SERVER } from '../support/db/real-postgres.js'
import { endWithTest } from '../support/program/children.js'
import type { Installation } from '../support/program/process.js'
import { installOld } from './install-old.js'
import { readFacts } from './old-installation.js'

const onPostgres = POSTGRES_SERVER !== undefined
const facts = readFacts(onPostgres ? 'postgres' : 'sqlite')
const [BASELINE = '', ...PENDING] = Object.keys(MIGRATIONS)
const NEWEST = PENDING.at(-1)
const COPY = /^postroad\.db\.before-upgrade-.+-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/

const newestIn = (postroad: Installation) =>
  postroad.sql<{ name: string }>('select max(name) as name from schema_migrations')[0]?.name
const copiesOf = ({ dataDir }: Installation) => readdirSync(dataDir).filter(name => COPY.test(name))

interface Check {
  readonly name: string
  readonly status: string
  readonly what: string
  readonly fix?: string
}

async function doctorOf(postroad: Installation): Promise<Check[]> {
  const { out } = await postroad.run('doctor', '--json')
  return JSON.parse(out) as Check[]
}

/** In a process that is killed when it reports so many events of this kind. */
async function upgradeAndDie(
  t: Test,
  { configFile, environment }: Installation,
  kind: string,
  number: number,
) {
  const child = fork('build/test/upgrade/upgrade-and-die.js', [kind, String(number)], {
    env: { PATH: process.env['PATH'] },
    serialization: 'advanced',
  })
  endWithTest(t, child)
  const closed = once(child, 'close')
  child.send(loadConfig({ schema: CONFIG_SCHEMA, file: configFile, env: environment }).config)
  t.same(await closed, [null, 'SIGKILL'])
}

t.test('migrate --dry-run says what an upgrade would do, and changes nothing', async t => {
  const postroad = installOld(t)
  const files = () =>
    readdirSync(postroad.dataDir).map(name => [
      name,
      createHash('sha256')
        .update(readFileSync(join(postroad.dataDir, name)))
        .digest('hex'),
    ])
  const before = files()
  const { status, out } = await postroad.run('migrate', '--dry-run', '--json')
  t.equal(status, 3)
  const plan = JSON.parse(out) as { pending: { name: string; rows: object }[]; room: object }
  t.same(
    plan.pending.map(({ name }) => name),
    PENDING,
  )
  t.match(plan, {
    schema: BASELINE,
    estimated_seconds: Number,
    copy: { setting: 'when_room', will_be_made: !onPostgres },
    room: { needed: Number, free: onPostgres ? null : Number },
  })
  t.match(plan.pending[2], {
    name: '0004-pending-payloads',
    description: /webhook deliveries/,
    rows: { webhook_deliveries: 360 },
  })
  const inWords = await postroad.run('migrate', '--dry-run')
  t.match(inWords, {
    status: 3,
    out: /0004-pending-payloads\n.*\n {2}touches 360 rows of webhook_deliveries/,
  })
  if (onPostgres) t.match(inWords.out, /copy +none: .* PostgreSQL server: .* pg_dump/)
  t.same(files(), before, 'every file is as it was, and none is beside them')
  t.equal(newestIn(postroad), BASELINE)

  t.match(await postroad.run('init'), { status: 0, out: /`postroad serve` upgrades it/ })
  t.equal(newestIn(postroad), BASELINE, 'init leaves it to the server')

  const done = await postroad.json<{ applied: string[]; copy: string | null }>('migrate')
  t.same(done.applied, PENDING)
  t.equal(done.copy === null, onPostgres)
  t.match(await postroad.run('migrate', '--dry-run'), { status: 0, out: /nothing to do/ })
})

t.test('an upgrade that is killed goes on at the next start, with the copy from before', async t => {
  for (const [kind, number] of [
    [onPostgres ? 'copy_not_applicable' : 'copied', 1],
    ['migrating', 3],
    ['migrated', 5],
  ] as const) {
    const postroad = installOld(t)
    await upgradeAndDie(t, postroad, kind, number)
    const copies = copiesOf(postroad)
    t.equal(copies.length, onPostgres ? 0 : 1)
    t.match(
      (await doctorOf(postroad)).find(({ name }) => name === 'upgrade'),
      {
        status: 'fail',
        what:
          kind === 'migrating'
            ? /was interrupted: migration 3 of \d+ \(0004-pending-payloads\)/
            : /was interrupted/,
        fix: onPostgres ? /start the server/ : /start the server: it continues; the copy from before is/,
      },
    )

    const server = await postroad.serve()
    const { log } = server
    t.equal(newestIn(postroad), NEWEST)
    t.same(copiesOf(postroad), copies, 'no other copy is made')
    if (!onPostgres) t.ok(log.some(({ event }) => event === 'upgrade copy kept'))
    t.match(
      log.find(({ event }) => event === 'migration applied'),
      { name: PENDING[kind === 'migrated' ? 5 : kind === 'migrating' ? 2 : 0], number: 1, ms: Number },
    )
    t.ok(log.some(({ event }) => event === 'upgrade completed'))
    t.match(await server.get('/api/v1/lists', { key: facts.key }), { status: 200 })
    t.notOk(existsSync(join(postroad.dataDir, 'upgrade.json')))
    await server.end('SIGKILL')
  }
})

t.test('doctor shows how far an upgrade in another process is', async t => {
  const postroad = installOld(t)
  const lock = takeServeLock(postroad.dataDir)
  t.teardown(() => lock[Symbol.dispose]())
  const state = {
    version: '1.2.3',
    startedAt: Date.parse(facts.at),
    from: BASELINE,
    newestEvent: 1,
    total: 8,
    applied: 2,
    migration: '0004-pending-payloads',
    copied: 1,
    copy: null,
  }
  writeFileSync(join(postroad.dataDir, 'upgrade.json'), JSON.stringify(state))
  const found = async () => (await doctorOf(postroad)).find(({ name }) => name === 'upgrade')
  t.match(await found(), {
    status: 'warn',
    what: /being upgraded to version 1\.2\.3 since .*: migration 3 of 8 \(0004-pending-payloads\)/,
  })
  writeFileSync(
    join(postroad.dataDir, 'upgrade.json'),
    JSON.stringify({ ...state, migration: null, copied: 0.425 }),
  )
  t.match(await found(), { what: /copying the database \(42 %\)/ })
})

if (!onPostgres) {
  t.test('restore accepts a copy from before an upgrade; the newest two are kept', async t => {
    const postroad = installOld(t)
    const older = ['2026-01-01T00-00-00-000Z', '2026-02-01T00-00-00-000Z', '2026-03-01T00-00-00-000Z'].map(
      time => `postroad.db.before-upgrade-0.9.0-${time}`,
    )
    for (const name of older) writeFileSync(join(postroad.dataDir, name), 'an older copy')
    const unfinished = `${older[0]}.partial`
    writeFileSync(join(postroad.dataDir, unfinished), 'of an upgrade that was killed')
    const { out, err } = await postroad.run('migrate')
    t.match(err, /copied the database to .*before-upgrade-.*[^]*3 of \d+: 0004-pending-payloads: Indexes/)
    t.match(out, 'the schema is up to date')
    const [newest = '', ...others] = copiesOf(postroad).filter(name => !older.includes(name))
    t.same(others, [])
    t.same(copiesOf(postroad).sort(), [newest, older[2]].sort())
    t.notOk(existsSync(join(postroad.dataDir, unfinished)))
    const copies = (await doctorOf(postroad)).find(({ name }) => name === 'upgrade_copies')
    t.match(copies, { status: 'ok', what: newest })
    t.match(copies?.what, older[2])

    const restored = await postroad.json<{ schema: string; rows: Record<string, number> }>(
      'restore',
      join(postroad.dataDir, newest),
      '--yes',
    )
    t.match(restored, { schema: BASELINE, rows: { messages: 189, contacts: 240 } })
    t.equal(newestIn(postroad), NEWEST)
  })

  t.test(
    'without room for a copy it is left out, or the upgrade is refused, as the setting says',
    async t => {
      const room = { POSTROAD_LIMITS_DISK_RESERVE: '1000GB' }
      const always = installOld(t, { ...room, POSTROAD_STORAGE_COPY_BEFORE_UPGRADE: 'always' })
      t.match(await always.run('migrate', '--dry-run'), {
        status: 3,
        out: /copy +none: a copy needs .*refused/,
      })
      t.match(await always.run('migrate'), {
        status: 1,
        err: /the database was not upgraded, since it could not be copied before: a copy needs 2\.3 MB beside limits\.disk_reserve .*set storage\.copy_before_upgrade to never/,
      })
      t.equal(newestIn(always), BASELINE)

      const whenRoom = installOld(t, room)
      t.match(await whenRoom.run('migrate'), { status: 0, err: /the database is not copied: a copy needs/ })
      t.equal(newestIn(whenRoom), NEWEST)
      t.same(copiesOf(whenRoom), [])

      const never = installOld(t, { POSTROAD_STORAGE_COPY_BEFORE_UPGRADE: 'never' })
      t.match(await never.run('migrate', '--dry-run'), {
        status: 3,
        out: /copy +none: storage\.copy_before_upgrade is never/,
      })
      t.match(await never.run('migrate'), { status: 0 })
      t.same(copiesOf(never), [])
    },
  )
}
