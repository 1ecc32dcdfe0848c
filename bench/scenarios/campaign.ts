/**
 * A campaign to many contacts: how fast its recipients are fixed and handed over, how fast its mail is delivered beside the relay of the
 * same run, whom that holds up meanwhile, and what kills in the middle cost.
 *
 * Called by `main.ts`. Contacts are there before (the stores' bulk insert); from the request to send on everything is the program's.
 * Fails: throws where anybody was not mailed.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { statSync } from 'node:fs'
import BetterSqlite from 'better-sqlite3'
import { fillList } from '../fill/fill-list.js'
import { recipient, sendRequest } from '../fill/letters.js'
import { percentile, short } from '../numbers.js'
import { sendLoad } from '../peers/api-load.js'
import { openProbes } from '../peers/probes.js'
import { openSink, type Sink } from '../peers/sinks.js'
import { untilQueueIsEmpty } from '../server/queue-watch.js'
import { copyInstallation, SENDER, serve, type Installation } from '../server/server-process.js'
import { printFacts } from '../table.js'
import { checkFacts, newsletter } from './campaign-check.js'

export interface CampaignOptions {
  readonly contacts: number
  readonly domains: number
  readonly kills: number
  /** Messages of the relay beside which it is held; 0: none. */
  readonly relayMessages: number
  readonly profile: boolean
}

const CONNECTIONS = { connections: 500, connectionsPerDestination: 40 }
/** Until a campaign is given up: one of few recipients, and for each of many. */
const [MOST_MS, MOST_MS_EACH] = [900_000, 3]
export async function measureCampaign(original: Installation, options: CampaignOptions): Promise<void> {
  const sink = await openSink()
  const relay = options.relayMessages === 0 ? undefined : await relayRate(original, sink, options)
  const facts = await run(original, sink, { ...options, kills: 0 }, 'campaign', relay)
  printFacts(`Campaign: ${options.contacts} contacts in ${options.domains} domains, ${sink.name}`, facts)
  if (options.kills > 0) {
    const killed = await run(original, sink, options, 'campaign-killed', undefined)
    printFacts(`The same with ${options.kills} kills -9 on the way`, killed)
  }
  await sink.stop()
}

/** Of single letters to a hundred recipients each, as `relay` has them. */
async function relayRate(
  original: Installation,
  sink: Sink,
  { relayMessages, domains }: CampaignOptions,
): Promise<number> {
  const installation = await copyInstallation(original, 'campaign-relay')
  const server = await serve(installation, { ...CONNECTIONS, port: sink.port })
  const startedAt = performance.now()
  await sendLoad({
    port: server.port,
    key: installation.key,
    connections: 8,
    requests: Math.ceil(relayMessages / 100),
    limitMs: 60_000,
    body: number =>
      sendRequest(
        number,
        Array.from({ length: 100 }, (_, at) => recipient(100 * number + at, domains)),
      ),
  })
  await untilQueueIsEmpty(installation.dataDir)
  const seconds = (performance.now() - startedAt) / 1_000
  await server.stop()
  return (100 * Math.ceil(relayMessages / 100)) / seconds
}

type Facts = [string, string][]

async function run(
  original: Installation,
  sink: Sink,
  { contacts, domains, kills, profile }: CampaignOptions,
  name: string,
  relay: number | undefined,
): Promise<Facts> {
  const installation = await copyInstallation(original, name)
  const file = join(installation.dataDir, 'postroad.db')
  const listId = await fillList(installation, contacts, domains)
  const outgoing = { ...CONNECTIONS, port: sink.port, reportsDelays: true }
  let server = await serve(installation, outgoing, profile ? name : undefined)
  const post = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${installation.key}`,
        'content-type': 'application/json',
        ...headers,
      },
      body: JSON.stringify(body),
    })
    const answer = (await response.json()) as { data?: Record<string, unknown> }
    if (!response.ok || !answer.data) throw new Error(JSON.stringify(answer))
    return answer.data
  }
  const template = await post('/templates', { name: 'News', html: newsletter() })
  const campaign = await post('/campaigns', {
    name: 'News',
    subject: 'News for {{firstName|you}}',
    from_email: SENDER,
    template_id: template['id'],
    list_id: listId,
  })
  const openOwnProbes = () =>
    openProbes({
      port: server.port,
      key: installation.key,
      // A few: mail of their own goes before the campaign's.
      everyMs: 200,
      path: () => `/campaigns/${String(campaign['id'])}`,
      body: number => sendRequest(number, `single${number}@single.example`),
    })
  const check =
    kills > 0
      ? []
      : await checkFacts(server, file, contacts, openOwnProbes(), () =>
          post(`/campaigns/${String(campaign['id'])}/check`, {}),
        )
  const askedAt = performance.now()
  await post(`/campaigns/${String(campaign['id'])}/send/api`, {}, { 'idempotency-key': 'bench' })
  const answeredMs = performance.now() - askedAt
  const startedAt = Date.now()
  const limitMs = Math.max(MOST_MS, contacts * MOST_MS_EACH)
  const probes = kills > 0 ? undefined : openOwnProbes()
  probes?.begin()
  let [peak, killed, lastDone] = [0, 0, 0]
  for (;;) {
    await sleep(250)
    peak = Math.max(peak, server.peakMemory())
    const [status, done] = looked(file, 'select status, done from campaigns') as [string, number]
    if (status === 'completed') break
    if (Date.now() - startedAt > limitMs)
      throw new Error(`the campaign is ${status} after ${limitMs / 60_000} minutes, ${done} done`)
    if (killed < kills && done > ((killed + 1) * contacts) / (kills + 2) && done > lastDone) {
      process.kill(server.pid, 'SIGKILL')
      killed += 1
      lastDone = done
      await sleep(100)
      server = await serve(installation, outgoing)
    }
  }
  const seen = probes?.end()
  await probes?.close()
  const facts = factsOf(file, contacts)
  await server.stop()
  const delays = server.delays()
  const singles = singleLatencies(file)
  const [recipients, messages, delivered, repeated] = looked(
    file,
    `select (select count(*) from campaign_recipients), count(*), sum(status = 'delivered'),
      (select count(*) from attempts where message_id in (select id from messages where campaign_id is not null))
      from messages where campaign_id is not null`,
  ) as [number, number, number, number]
  if (recipients !== contacts || messages !== contacts || delivered !== contacts)
    throw new Error(`${recipients} recipients, ${messages} messages, ${delivered} delivered of ${contacts}`)
  return [
    ...check,
    ['answer to send', `${short(answeredMs)} ms`],
    ['recipients fixed', `${short(facts.fixedPerSecond)}/s`],
    ['handed over while the queue has room', `${short(facts.handedPerSecond)}/s`],
    ['delivered', `${short(facts.deliveredPerSecond)}/s, ${short(facts.seconds)} s in all`],
    ...(relay === undefined
      ? []
      : ([
          [
            'relay of the same run',
            `${short(relay)}/s; the campaign has ${Math.round((100 * facts.deliveredPerSecond) / relay)} % of it`,
          ],
        ] as Facts)),
    ...(seen === undefined
      ? []
      : ([
          [
            'API meanwhile, p99',
            `read ${short(percentile(seen.reads, 0.99))} ms, send ${short(percentile(seen.sends, 0.99))} ms`,
          ],
          [
            'single send, from acceptance to delivery',
            `p50 ${short(percentile(singles, 0.5))} ms, p99 ${short(percentile(singles, 0.99))} ms`,
          ],
        ] as Facts)),
    ['event loop late', delays ? `p99 ${short(delays.p99Ms)} ms, most ${short(delays.mostMs)} ms` : '-'],
    ['peak memory', `${Math.round(peak / 2 ** 20)} MB`],
    ['database', `${Math.round(statSync(file).size / 2 ** 20)} MB`],
    ...(kills === 0
      ? []
      : ([
          [
            'kills',
            `${killed}; ${repeated - contacts} attempts more than recipients: mail in flight at a kill`,
          ],
          ['recipients, messages, delivered', `${recipients}, ${messages}, ${delivered}: everybody once`],
        ] as Facts)),
  ]
}

/** Durations from the rows, ms to seconds. */
function factsOf(file: string, contacts: number) {
  const [requested, fixed, started, finished] = looked(
    file,
    'select requested_at, fixed_at, started_at, finished_at from campaigns',
  ) as [number, number, number, number]
  const first = Math.min(contacts, 9_000)
  const [handed] = looked(
    file,
    `select created_at from messages where campaign_id is not null order by campaign_id, id limit 1 offset ${first - 1}`,
  ) as [number]
  const perSecond = (count: number, ms: number) => (1_000 * count) / Math.max(1, ms)
  return {
    fixedPerSecond: perSecond(contacts, fixed - requested),
    handedPerSecond: perSecond(first, handed - started),
    deliveredPerSecond: perSecond(contacts, finished - started),
    seconds: (finished - requested) / 1_000,
  }
}

function singleLatencies(file: string): number[] {
  const handle = new BetterSqlite(file, { readonly: true })
  const rows = handle
    .prepare(
      'select delivered_at - created_at from messages where campaign_id is null and delivered_at is not null',
    )
    .pluck()
    .all() as number[]
  handle.close()
  return rows
}

function looked(file: string, sql: string): unknown[] {
  const handle = new BetterSqlite(file, { readonly: true, timeout: 10_000 })
  const row = handle.prepare(sql).raw().get() as unknown[]
  handle.close()
  return row
}
