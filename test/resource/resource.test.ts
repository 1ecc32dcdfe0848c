/** What a resource declares is all that is known of it: its keys are in the configuration, its rows become jobs. */
import t from 'tap'
import { configSchema } from '../../src/config/schema/schema.js'
import { flag, table } from '../../src/config/schema/fields.js'
import { commentedToml } from '../../src/config/generate.js'
import { loadConfig } from '../../src/config/load.js'
import { resource } from '../../src/resource/resource.js'
import { retentionJobs, type Retention } from '../../src/resource/retention.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { sqliteDatabase } from '../support/db/database.js'

const NOTES_KEPT = { notes: { default: '30d', min: '2d', description: 'Notes, and what was said of them.' } }

const notes = resource({
  kept: NOTES_KEPT,
  section: {
    name: 'notes',
    schema: table(
      { are_public: flag({ default: false, description: 'Whether everybody reads them.' }) },
      { description: 'Notes.' },
    ),
  },
  open: (parts: { readonly said: string[] }, { arePublic }) => {
    parts.said.push(arePublic ? 'public' : 'private')
    return {}
  },
})

const schema = configSchema({
  sections: { notes: notes.section?.schema ?? table({}) },
  kept: notes.kept ?? {},
})
const load = (toml: string) =>
  loadConfig({ schema, file: 'postroad.toml', env: {}, readFile: () => `hostname = "mx.test"\n${toml}` })
    .config

t.test('the section of a resource is generated, validated and passed to it decoded', async t => {
  t.match(
    commentedToml(schema),
    /# Notes\.\n\[notes\]\n# Whether everybody reads them\. .*\n#are_public = false/,
  )
  t.match(commentedToml(schema), /\n\[retention\]\n# Notes, and what was said of them\. .*\n#notes = "30d"/)
  t.throws(() => load('[notes]\nare_pubic = true'), /did you mean notes\.are_public/)
  t.throws(() => load('[retention]\nnotes = "1d"'), /from 2d/)
  const said: string[] = []
  for (const toml of ['', '[notes]\nare_public = true']) notes.open({ said }, load(toml).sections['notes'])
  t.same(said, ['private', 'public'])
})

t.test('records are deleted by the shortest of their retention keys, and kept if all are 0', async t => {
  const clock = new FakeClock('2026-01-05T10:00:00.000Z')
  const parts = { database: await sqliteDatabase(t), clock, log: new FakeLog() }
  const asked: (readonly [string, number])[] = []
  const row = (what: string, keep: Retention['keep'], schedule?: string): Retention => ({
    what,
    keep,
    ...(schedule === undefined ? {} : { schedule }),
    begin(before) {
      asked.push([what, clock.now() - before])
      return () => Promise.resolve({ removed: 0, hasMore: false })
    },
  })
  const rows = [
    row('both', ['long', 'short']),
    row('one for ever', ['ever', 'long'], '13 */6 * * *'),
    row('all for ever', ['ever']),
    row('fixed', 5),
  ]
  const jobs = retentionJobs(parts, rows, { ever: 0, long: 900, short: 20 })
  for (const job of jobs) await job.run(new AbortController().signal)
  t.same(asked, [
    ['both', 20],
    ['one for ever', 900],
    ['fixed', 5],
  ])
  t.same(
    jobs.map(({ name, schedule }) => [name, schedule]),
    [
      ['prune both', '0 * * * *'],
      ['prune one for ever', '13 */6 * * *'],
      ['prune fixed', '45 * * * *'],
    ],
    'hourly, each at a minute of its own',
  )
  t.throws(
    () => retentionJobs(parts, rows, { ever: 0, long: 900 }),
    /no resource has the key retention\.short/,
  )
})
