/** A database that this program cannot serve is refused by every way in, and left as it was. */
import t from 'tap'
import { POSTGRES_SERVER } from '../support/db/real-postgres.js'
import { initialise, type Initialised } from '../support/program/process.js'

interface Unusable {
  readonly because: string
  readonly change: string
  readonly says: RegExp
  /** What `doctor` advises. */
  readonly fix: RegExp
}

const UNUSABLE: readonly Unusable[] = [
  {
    because: 'a newer program wrote it',
    change: "insert into schema_migrations values ('9999-time-travel', '2026-01-05')",
    says: /the database was written by a newer Postroad \(it has schema change 9999-time-travel\); install/,
    fix: /install that version again, or restore a backup made with this one/,
  },
  {
    because: 'somebody dropped a table',
    change: 'drop table campaign_clicks',
    says: /does not match its schema version [\w-]+: table campaign_clicks is missing; it was changed by hand: undo the change/,
    fix: /undo the change, or restore a backup/,
  },
  {
    because: 'somebody added a view',
    change: 'create view addresses as select email from contacts',
    says: /does not match its schema version [\w-]+: view addresses was added; drop what was added/,
    fix: /drop what was added/,
  },
]

for (const { because, change, says, fix } of UNUSABLE)
  t.test(`a database is refused by everything that would open it if ${because}`, async t => {
    const postroad = await initialise(t)
    postroad.sql(change)
    const before = postroad.rowCounts()
    for (const command of [
      'serve',
      'migrate',
      'init',
      'workspace list',
      `migrate copy ${placeOf(postroad)} copy.db`,
    ])
      t.match(await postroad.run(...command.split(' ')), { status: 1, err: says }, command)
    const { status, out } = await postroad.run('doctor', '--json')
    t.equal(status, 1)
    const checks = JSON.parse(out) as { name: string }[]
    t.match(
      checks.filter(({ name }) => ['schema', 'database'].includes(name)),
      [{ name: 'schema', status: 'fail', fix }],
    )
    t.same(postroad.rowCounts(), before)
  })

function placeOf({ environment }: Initialised): string {
  return POSTGRES_SERVER === undefined ? 'sqlite:postroad.db' : (environment['POSTROAD_DATABASE_URL'] ?? '')
}
