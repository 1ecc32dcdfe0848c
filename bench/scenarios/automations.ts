/**
 * Runs of automations: many contacts that join a list at once, with a million runs of another automation that wait beside them.
 *
 * Called by `main.ts`. The waiting runs are put into the database before the server starts; contacts join by the API, 5,000 a request, and
 * each gets a tag and then waits. Meanwhile two other clients ask for a list and hand in a mail every few milliseconds, whose 99th
 * percentile is to stay within a limit. Nothing is delivered (see `accept.ts`).
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { openSqlite } from '../../src/db/sqlite/open-sqlite.js'
import { systemClock } from '../../src/world/time/clock.js'
import { bulkInsert } from '../fill/bulk-insert.js'
import { recipient, sendRequest } from '../fill/letters.js'
import { percentile, short } from '../numbers.js'
import { openProbes } from '../peers/probes.js'
import { openSilentServer } from '../peers/sinks.js'
import { copyInstallation, serve, type Installation, type ServerProcess } from '../server/server-process.js'
import { printTable } from '../table.js'
import { peakText } from './accept.js'
import { DAY_MS, newId } from './history.js'

export interface AutomationOptions {
  readonly contacts: number
  readonly waiting: number
  readonly profile: boolean
}

const PER_REQUEST = 5_000
/** For everybody else, at the 99th percentile. */
const HELD_UP_MS = 50
/** After a start: its work goes on for some seconds. */
const STARTED_MS = 15_000
/** Jobs of each minute are among it. */
const IDLE_SECONDS = 60
const LIMIT_MS = 600_000

export async function measureAutomations(
  original: Installation,
  { contacts, waiting, profile }: AutomationOptions,
): Promise<void> {
  const installation = await copyInstallation(original, 'automations')
  const ids = await fillContacts(installation, contacts)
  fillWaiting(installation, waiting)
  const silent = await openSilentServer()
  const outgoing = { port: silent.port, connections: 1, connectionsPerDestination: 1, reportsDelays: true }
  const server = await serve(installation, outgoing, profile ? 'automations' : undefined)
  const idle = await cpuShare(server)
  const post = async (path: string, body: object, method = 'POST') => {
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${installation.key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
    return String(((await response.json()) as { data: { id?: string } }).data.id)
  }
  const list = await post('/lists', { name: 'News' })
  const flow = await post('/automations', {
    name: 'Welcome',
    trigger_type: 'list_joined',
    trigger_config: { listId: list },
    steps: [{ step_type: 'tag', config: { tagName: 'new' } }, { step_type: 'delay' }],
  })
  await post(`/automations/${flow}`, { status: 'active' }, 'PATCH')
  const probes = openProbes({
    port: server.port,
    key: installation.key,
    path: () => `/lists/${list}`,
    body: number => sendRequest(number, recipient(number, 20)),
  })
  probes.begin()
  const startedAt = performance.now()
  for (let at = 0; at < ids.length; at += PER_REQUEST)
    await post(`/lists/${list}/members`, { contact_ids: ids.slice(at, at + PER_REQUEST) })
  const joinedMs = performance.now() - startedAt
  const begunMs = await untilThereAre(
    installation,
    ids.length,
    'select count(*) from automation_runs where automation = 2',
    startedAt,
  )
  const doneMs = await untilThereAre(
    ...([installation, ids.length] as const),
    "select count(*) from automation_runs where automation = 2 and wait = 'time'",
    startedAt,
  )
  const { reads, sends } = probes.end()
  const peak = peakText(server)
  await probes.close()
  await server.stop()
  await silent.stop()
  const rate = (ms: number) => short((1_000 * ids.length) / ms)
  const [read, send] = [percentile(reads, 0.99), percentile(sends, 0.99)]
  printTable(
    `Automations: ${contacts} contacts join a list at once, ${waiting} runs wait beside them`,
    [
      ['', 'a second', 'seconds'],
      ['put into the list', rate(joinedMs), short(joinedMs / 1_000)],
      ['runs begun', rate(begunMs), short(begunMs / 1_000)],
      ['first step done, second waits', rate(doneMs), short(doneMs / 1_000)],
    ],
    [
      `Beside, p99: GET ${short(read)} ms, send ${short(send)} ms (limit ${HELD_UP_MS} ms); the event loop was late by ` +
        `${short(server.delays()?.p99Ms ?? NaN)} ms at p99; server's peak memory ${peak}.`,
      `While nothing is due: ${(100 * idle).toFixed(1)} % of one core.`,
    ],
  )
}

async function fillContacts({ dataDir, workspaceId }: Installation, count: number): Promise<string[]> {
  const database = await openSqlite({
    file: join(dataDir, 'postroad.db'),
    clock: systemClock,
    mayMigrate: false,
  })
  const now = Date.now()
  const ids: string[] = []
  for (let start = 0; start < count; start += PER_REQUEST)
    await database.write(async tx => {
      const made = await insertContacts(
        tx.db,
        workspaceId,
        Array.from({ length: Math.min(PER_REQUEST, count - start) }, (_, at) => ({
          id: newId(now),
          email: `c${start + at}@one.example`,
          firstName: null,
          lastName: null,
          attributes: {},
          subscribed: true,
          createdAt: now,
        })),
      )
      ids.push(...made.map(({ id }) => id))
    })
  await database[Symbol.asyncDispose]()
  return ids
}

/** Of an automation of their own, due in a year. */
function fillWaiting({ dataDir, workspaceId }: Installation, count: number): void {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
  const now = Date.now()
  handle.pragma('synchronous = off')
  bulkInsert(
    handle,
    'automations',
  )({
    id: newId(now),
    workspace_id: workspaceId,
    is_sandbox: 0,
    name: 'Waiting',
    status: 'active',
    trigger_type: 'manual',
    trigger_config: '{"frequency":"once"}',
    runs_active: count,
    runs_completed: 0,
    runs_failed: 0,
    runs_cancelled: 0,
    activated_at: now,
    version: 1,
    scan: null,
    unsettled_at: null,
    created_at: now,
    updated_at: now,
    deleted_at: null,
  })
  const insert = bulkInsert(handle, 'automation_runs')
  handle.transaction(() => {
    for (let at = 0; at < count; at += 1)
      insert({
        id: newId(now),
        automation: 1,
        workspace_id: workspaceId,
        is_sandbox: 0,
        contact_id: newId(now),
        contact_email: `w${at}@two.example`,
        status: 'active',
        step: 1,
        wait: 'event',
        wait_event: 'purchase',
        wait_message: null,
        due_at: now + 365 * DAY_MS + at,
        parked_due_at: null,
        steps_done: 1,
        failures: 0,
        refusals: 0,
        last_message_id: null,
        trigger_type: 'api',
        trigger_data: '{}',
        flow_version: 1,
        exit_reason: null,
        error: null,
        started_at: now,
        ended_at: null,
      })
  })()
  handle.close()
}

/** Of one core, while nothing is asked. */
async function cpuShare(server: ServerProcess): Promise<number> {
  await sleep(STARTED_MS)
  const before = server.cpuSeconds()
  await sleep(1_000 * IDLE_SECONDS)
  return (server.cpuSeconds() - before) / IDLE_SECONDS
}

/** @returns ms since `startedAt` */
async function untilThereAre(
  { dataDir }: Installation,
  count: number,
  question: string,
  startedAt: number,
): Promise<number> {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  try {
    while ((handle.prepare(question).pluck().get() as number) < count) {
      if (performance.now() - startedAt > LIMIT_MS) throw new Error('runs do not come on')
      await sleep(500)
    }
    return performance.now() - startedAt
  } finally {
    handle.close()
  }
}
