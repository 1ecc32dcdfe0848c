/** Waiting runs cost nothing: due runs, and runs waiting for an event, are found along an index. */
import { sql } from 'kysely'
import t from 'tap'
import {
  dueOfQuery,
  dueQuery,
  findDue,
  findDueOf,
  insertRuns,
  listOwnersOfRuns,
} from '../../src/automations/runs/run-store.js'
import { wakingQuery } from '../../src/automations/runs/bulk-run-store.js'
import { eachDatabase, sqliteDatabase } from '../support/db/database.js'

t.test('due runs, and runs waiting for an event, are found through an index among a million', async t => {
  const database = await sqliteDatabase(t)
  const { reader } = database
  const plan = async (compiled: { readonly sql: string; readonly parameters: readonly unknown[] }) => {
    const text = compiled.sql.replaceAll('?', '0')
    const { rows } = await sql<{ detail: string }>`explain query plan ${sql.raw(text)}`.execute(reader)
    return rows.map(({ detail }) => detail)
  }
  const due = await plan(dueQuery(reader, { now: 1, limit: 100 }).compile())
  t.match(due, [/^SEARCH automation_runs USING COVERING INDEX automation_runs_due \(due_at<\?\)$/])
  t.equal(due.length, 1, 'nothing is sorted')
  const dueOf = await plan(dueOfQuery(reader, { workspaceId: 'w1', now: 1, limit: 100 }).compile())
  t.match(dueOf, [/COVERING INDEX automation_runs_due_of \(workspace_id=\? AND due_at<\?\)$/])
  const happened = { contactId: 'c', event: 'purchase', messageId: null } as const
  const [waking = ''] = await plan(wakingQuery(happened).compile(reader))
  t.match(
    waking,
    /^SEARCH automation_runs USING INDEX automation_runs_waiting \(contact_id=\? AND wait_event=\?\)/,
  )
  // As many as make a scan plain to see, a million being no more for an index.
  await database.write(tx =>
    insertRuns(
      tx.db,
      Array.from({ length: 5_000 }, (_, at) => ({
        ...{ id: `run${at}`, automation: 1, workspaceId: 'w1', isSandbox: false, contactId: `c${at}` },
        ...{ contactEmail: 'x', step: 1, stepsDone: 0, triggerType: 'manual', triggerData: {} },
        flowVersion: 1,
        startedAt: at,
      })),
    ),
  )
  t.same((await findDue(reader, 4, 3)).length, 3)
})

eachDatabase(t, 'due runs are found workspace by workspace, however many one has', async (t, database) => {
  const runsOf = (workspaceId: string, count: number) =>
    Array.from({ length: count }, (_, at) => ({
      ...{ id: `${workspaceId} ${at}`, automation: 1, workspaceId, isSandbox: false, contactId: `c${at}` },
      ...{
        contactEmail: 'x',
        step: 1,
        stepsDone: 0,
        triggerType: 'manual',
        triggerData: {},
        flowVersion: 1,
        startedAt: at,
      },
    }))
  await database.write(({ db }) =>
    insertRuns(db, [...runsOf('w2', 40), ...runsOf('w1', 2), ...runsOf('w3', 1)]),
  )
  const { reader } = database
  t.same(await listOwnersOfRuns(reader, '', 10), ['w1', 'w2', 'w3'])
  t.same(await listOwnersOfRuns(reader, '', 2), ['w1', 'w2'])
  t.same(await listOwnersOfRuns(reader, 'w2', 2), ['w3'])
  t.same(await listOwnersOfRuns(reader, 'w3', 2), [])
  t.equal((await findDueOf(reader, 'w1', 100, 5)).length, 2)
  t.equal((await findDueOf(reader, 'w2', 100, 5)).length, 5)
  t.equal((await findDueOf(reader, 'w2', 2, 5)).length, 3, 'of those that are due')
})
