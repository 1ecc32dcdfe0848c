/** kill -9 during automation runs: they resume; no step runs twice, every mail has its mark and every mark its mail. */
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import t from 'tap'
import { often } from '../support/long.js'
import { initialise, type Initialised } from '../support/program/process.js'
import { until } from '../support/until.js'

const CONTACTS = often(300, 600)
const KILLS = often(2, 3)

function look({ dataDir }: Initialised) {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  const one = (text: string) => handle.prepare(text).pluck().get() as number
  const seen = {
    runs: one('select count(*) from automation_runs'),
    finished: one('select count(*) from automation_runs where ended_at is not null'),
    completed: one('select runs_completed from automations'),
    unfinished: one('select runs_active from automations'),
    marks: one(
      "select count(*) from automation_run_steps where step_type = 'email' and outcome = 'completed'",
    ),
    mails: one('select count(*) from messages'),
    tagged: one("select count(*) from events where kind = 'tag.added'"),
    twice: one(
      'select count(*) from (select 1 from automation_run_steps group by run, step_id having count(*) > 1)',
    ),
  }
  handle.close()
  return seen
}

t.test('a server killed repeatedly during runs executes each step once', async t => {
  const postroad = await initialise(t, {
    env: { POSTROAD_MTA_CAPTURE: 'true', POSTROAD_MTA_SHARED_ADDRESS: 'notify@mail.test' },
  })
  const { workspaceId, key } = postroad
  const settings = ['default_from_email=shop@shop.test', 'hourly_limit=0', 'daily_limit=0']
  await postroad.json('workspace', 'set', workspaceId, ...settings)
  let server = await postroad.serve()
  const make = async (path: string, body: object) =>
    String((await server.post(`/api/v1${path}`, body, { key })).body.data.id)
  const template = await make('/templates', { name: 'T', html: '<p>Hello</p>' })
  const list = await make('/lists', { name: 'News' })
  const flow = await make('/automations', {
    ...{ name: 'Welcome', trigger_type: 'list_joined', trigger_config: { listId: list } },
    steps: [
      { step_type: 'tag', config: { tagName: 'new' } },
      { step_type: 'email', config: { templateId: template, subject: 'Welcome' } },
      { step_type: 'update_attribute', config: { attributeName: 'welcomed', attributeValue: 'yes' } },
    ],
  })
  await server.patch(`/api/v1/automations/${flow}`, { status: 'active' }, { key })
  const csv = ['email', ...Array.from({ length: CONTACTS }, (_, at) => `c${at}@one.test`)].join('\n')
  const headers = { 'Content-Type': 'text/csv' }
  await server.post(`/api/v1/contacts/import?list_id=${list}`, csv, { key, headers })
  for (let kill = 1; kill <= KILLS; kill += 1) {
    await until('some runs', () => look(postroad).finished >= (kill * CONTACTS) / (KILLS + 2))
    await server.end('SIGKILL')
    server = await postroad.serve()
  }
  await until('the end of all', () => look(postroad).finished === CONTACTS)
  t.match(look(postroad), {
    ...{ runs: CONTACTS, completed: CONTACTS, unfinished: 0, twice: 0 },
    ...{ marks: CONTACTS, mails: CONTACTS, tagged: CONTACTS },
  })
})
