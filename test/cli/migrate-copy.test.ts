/** `postroad migrate copy` between two SQLite files, and what it refuses. The copies to and from PostgreSQL are in test/db and test/nodes. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { install } from '../support/program/process.js'

const ON_SQLITE = { env: { POSTROAD_DATABASE_URL: 'sqlite:postroad.db' } }

t.test('a copy is a database to go on with, and is reported by table', async t => {
  const postroad = install(t, ON_SQLITE)
  await postroad.json('init')
  writeFileSync(join(postroad.dataDir, 'erased-addresses'), '')
  const file = join(postroad.dataDir, 'copy.db')
  const { status, out, err } = await postroad.run('migrate', 'copy', 'sqlite:postroad.db', 'sqlite:copy.db')
  t.equal(status, 0)
  t.match(out, /^TABLE +ROWS +CHECKSUM.*\n[^]*\nworkspaces +1 +([0-9a-f]{16}) +1 +\1 +equal\n/)
  t.match(out, /and \d+ empty tables/)
  t.match(out, /erased-addresses: the register/)
  t.notMatch(out, /acme:/)
  t.match(err, /^copying workspaces: 1 rows in \d+\.\d s$/m)
  const copied = install(t, { env: { POSTROAD_DATABASE_URL: `sqlite:${file}` } })
  mkdirSync(copied.dataDir)
  t.match(await copied.run('workspace', 'list'), { status: 0, out: /default/i })
  const again = await postroad.run('migrate', 'copy', 'sqlite:postroad.db', file)
  t.match(again, { status: 1, err: /target: .*copy.db exists already; move it away/ })
  const other = await postroad.run('migrate', 'copy', file, `${file}.2`, '--json')
  t.equal(other.err, '', 'no progress beside JSON')
  const { success, tables } = JSON.parse(other.out) as { success: boolean; tables: object[] }
  t.equal(success, true)
  t.match(tables.at(-1), { table: 'write_trials', source: { rows: Number, checksum: /^[0-9a-f]{64}$/ } })
})

t.test('a database that a server uses is refused', async t => {
  const postroad = install(t, ON_SQLITE)
  await postroad.json('init')
  await postroad.serve()
  const refused = await postroad.run('migrate', 'copy', 'sqlite:postroad.db', 'sqlite:copy.db')
  t.match(refused, { status: 1, err: /another postroad serves/ })
  t.notOk(existsSync(join(postroad.dataDir, 'copy.db')))
})

t.test('what names no database is refused without repeating a password', async t => {
  const postroad = install(t, ON_SQLITE)
  await postroad.json('init')
  for (const [text, expected] of [
    ['postgres://ann:s3cret@[db/x', { status: 2, err: /SOURCE is neither sqlite:FILE nor a valid postgres/ }],
    ['mysql://ann:s3cret@db/x', { status: 2, err: /SOURCE is neither/ }],
    ['postgres://ann:s3cret@127.0.0.1:9/x', { status: 1, err: /source: the database cannot be reached/ }],
    ['sqlite:none.db', { status: 1, err: /source: there is no database at .*none.db/ }],
  ] as const) {
    const refused = await postroad.run('migrate', 'copy', text, 'sqlite:copy.db')
    t.match(refused, expected, text)
    t.notMatch(refused.err + refused.out, /s3cret/)
  }
})
