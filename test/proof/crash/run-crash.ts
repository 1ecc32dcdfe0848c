/**
 * Kills a busy server with SIGKILL again and again, and compares what its clients were promised with what arrived.
 *
 * Kills come at random moments of the seed, one in eight of them while the server starts. Right after each kill the database is read, as it
 * is on disk, for the mail that is claimed: only that was in flight, and only that may arrive once more. A kill ends the process and not the
 * machine: what was written and not synced survives it, so this proves nothing about power failures.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import BetterSqlite from 'better-sqlite3'
import { join } from 'node:path'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { initialise, type Initialised } from '../../support/program/process.js'
import { unusedPort } from '../../support/smtp/sink.js'
import { until } from '../../support/until.js'
import { Load, WAYS } from '../load.js'
import { openMailbox, type Mailbox } from '../mailbox.js'
import { showProgress, type Proof } from '../proof.js'
import { openWebhookLedger, type WebhookLedger } from '../webhook-receiver.js'

export interface CrashOptions {
  readonly kills: number
  readonly seed: number
  /** Mails a second by REST and SMTP. */
  readonly rate: number
  /** Contacts of each campaign. */
  readonly campaignSize: number
  /** ms between two kills, at most. */
  readonly longestRunMs: number
}

const SHORTEST_RUN_MS = 200
/** Share of kills that come while the server starts, and how soon after the start of the process. */
const [DURING_START, START_MS] = [1 / 8, 700]
const [DEFERRED_SHARE, REFUSED_SHARE] = [0.05, 0.02]
const START_LIMIT_MS = 60_000
/** A webhook that was refused is retried after five seconds, the second time after five minutes. */
const DRAIN_LIMIT_MS = 600_000
/** What the database says of itself. */
const EXAMINED = ['server', 'database', 'schema', 'disk', 'events', 'jobs', 'hold', 'clock']

/** @returns lines about the run */
export async function runCrash(proof: Proof, options: CrashOptions): Promise<readonly string[]> {
  const { kills, seed, rate, campaignSize, longestRunMs } = options
  const random = new SeededRandom(seed)
  const mailbox = await openMailbox(proof, { seed, deferredShare: DEFERRED_SHARE })
  const webhooks = await openWebhookLedger(proof, { seed, refusedShare: REFUSED_SHARE })
  const [httpPort, submissionPort] = [await unusedPort(), await unusedPort()]
  const postroad = await initialise(proof, { env: settings(mailbox.port, httpPort, submissionPort) })
  const limits = ['default_from_email=news@sender.test', 'hourly_limit=0', 'daily_limit=0']
  await postroad.json('workspace', 'set', postroad.workspaceId, ...limits)
  const { key } = postroad
  const load: Load = new Load({
    ...{ httpPort, submissionPort, key, rate, campaignSize, random: new SeededRandom(seed + 1) },
    waiting: () => load.acceptedCount - mailbox.arrived,
  })

  /** By recipient: at how many kills its mail was in flight. */
  const inFlight = new Map<string, number>()
  const startTimes: number[] = []
  let server = await postroad.serve()
  await load.prepare(webhooks.url)
  load.start()
  const startedAt = performance.now()
  for (let kill = 1; kill <= kills; kill += 1) {
    await sleep(SHORTEST_RUN_MS + random.fraction() * (longestRunMs - SHORTEST_RUN_MS))
    await server.end('SIGKILL')
    noteInFlight(postroad, inFlight)
    if (random.fraction() < DURING_START) {
      const starting = postroad.start()
      await sleep(random.fraction() * START_MS)
      await starting.end('SIGKILL')
      noteInFlight(postroad, inFlight)
    }
    const begunAt = performance.now()
    server = await postroad.serve()
    startTimes.push(performance.now() - begunAt)
    showProgress(`kill ${kill} of ${kills}, ${mailbox.arrived} mails arrived`)
  }
  const killedSeconds = (performance.now() - startedAt) / 1_000
  await load.stop()
  await untilDrained(postroad)
  showProgress('')

  checkMail(proof, load, mailbox)
  const repeats = checkRepeats(proof, mailbox, inFlight)
  checkWebhooks(proof, load, webhooks)
  await checkDatabase(proof, postroad)
  const { status } = await server.end('SIGTERM')
  proof.check('the server stops with status 0', status === 0, `status ${String(status)}`)
  checkIntegrity(proof, postroad)

  const slowestStart = Math.max(...startTimes) / 1_000
  proof.check(
    'the server serves again within a minute of each kill',
    slowestStart * 1_000 < START_LIMIT_MS,
    `${slowestStart.toFixed(1)} s at most`,
  )
  return [
    `${kills} kills in ${Math.round(killedSeconds)} s, seed ${seed}: ${mailbox.arrived} mails arrived (${Math.round(mailbox.arrived / killedSeconds)}/s), ${mailbox.deferred} were deferred at first.`,
    `Repeated: ${repeats} mails, ${(repeats / kills).toFixed(1)} a kill. In flight: ${(sum(inFlight.values()) / kills).toFixed(1)} a kill.`,
    `Accepted by ${WAYS.map(way => `${way} ${countOf(load, way)}`).join(', ')}. Without an answer: ${load.recipientsOf('unknown').length}.`,
  ]
}

function settings(port: number, httpPort: number, submissionPort: number): Record<string, string> {
  return {
    POSTROAD_HTTP_LISTEN: `127.0.0.1:${httpPort}`,
    POSTROAD_SUBMISSION_LISTEN: `127.0.0.1:${submissionPort}`,
    POSTROAD_SUBMISSION_REQUIRE_TLS: 'false',
    POSTROAD_MTA_ROUTES: JSON.stringify([{ domain: '*', host: '127.0.0.1', port, tls: 'none' }]),
    POSTROAD_MTA_WORKERS: '2',
    POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8',
    POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0',
  }
}

/** What is claimed on disk, read without changing anything: recovery is the server's own business. */
function noteInFlight({ dataDir }: Initialised, inFlight: Map<string, number>): void {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'), { readonly: true })
  try {
    const claimed = handle.prepare('select recipient from queue where claimed_by is not null').pluck().all()
    for (const recipient of claimed as string[]) inFlight.set(recipient, (inFlight.get(recipient) ?? 0) + 1)
  } finally {
    handle.close()
  }
}

async function untilDrained(postroad: Initialised): Promise<void> {
  const open = () =>
    postroad.sql<Record<string, number>>(`select
      (select count(*) from queue) as queued,
      (select count(*) from automation_runs where ended_at is null) as runs,
      (select count(*) from webhook_deliveries where next_attempt_at is not null) as webhooks`)[0] ?? {}
  await until(
    'the queue, the runs and the webhooks to be done',
    async () => {
      await sleep(LOOK_MS)
      return Object.values(open()).every(count => count === 0)
    },
    DRAIN_LIMIT_MS,
    () => JSON.stringify(open()),
  )
}

const LOOK_MS = 500

function checkMail(proof: Proof, load: Load, mailbox: Mailbox): void {
  const accepted = load.recipientsOf('accepted')
  const arrived = (to: string) => mailbox.arrivals.has(to)
  for (const way of WAYS.filter(one => one !== 'cancelled'))
    proof.checkNone(
      `every mail that was accepted arrived (${way})`,
      accepted.filter(to => load.offered.get(to)?.way === way && !arrived(to)),
    )
  proof.checkNone('no mail that was cancelled arrived', load.recipientsOf('cancelled').filter(arrived))
  proof.checkNone('no mail that was refused arrived', load.recipientsOf('refused').filter(arrived))
  proof.checkNone(
    'nobody got a mail that was not offered',
    [...mailbox.arrivals.keys()].filter(to => !load.offered.has(to)),
  )
  proof.checkNone(
    'no mail was made twice, by campaigns, automations or repeated requests',
    [...mailbox.arrivals]
      .filter(([, arrivals]) => new Set(arrivals.map(({ messageId }) => messageId)).size > 1)
      .map(([to]) => to),
  )
  proof.checkNone('every answer was a success or a request to come back later', load.strange)
}

/** @returns how many mails arrived once more, counted each time */
function checkRepeats(proof: Proof, mailbox: Mailbox, inFlight: ReadonlyMap<string, number>): number {
  let repeats = 0
  const unexplained: string[] = []
  for (const [to, { length }] of mailbox.arrivals) {
    repeats += length - 1
    if (length - 1 > (inFlight.get(to) ?? 0)) unexplained.push(`${to} ${length} times`)
  }
  proof.checkNone('only mail in flight at a kill arrived again', unexplained)
  return repeats
}

function checkWebhooks(proof: Proof, load: Load, { ids, received }: WebhookLedger): void {
  const expected = [
    ...[...load.contacts].map(to => `contact.created ${to}`),
    ...[...load.unknownRecipients].map(to => `email.bounced ${to}`),
  ]
  proof.checkNone(
    'every event reached its webhook',
    expected.filter(about => !ids.has(about)),
  )
  proof.checkNone(
    'each event came under one delivery id',
    [...ids].filter(([, seen]) => seen.size > 1).map(([about]) => about),
  )
  proof.check('webhooks were called', received > 0, received)
}

async function checkDatabase(proof: Proof, postroad: Initialised): Promise<void> {
  const [counts] = postroad.sql<Record<string, number>>(`select
    (select count(*) from messages where status in ('sent', 'scheduled')) as open,
    (select count(*) from campaign_recipients where status in ('pending', 'sent')) as unfinished,
    (select count(*) from (select 1 from automation_run_steps where outcome = 'completed' group by run, step_id having count(*) > 1)) as steps,
    (select count(*) from campaigns where status <> 'completed') as campaigns`)
  proof.check('every message has its result', counts?.['open'] === 0, `${counts?.['open']} without`)
  proof.check('every recipient of a campaign has a result', counts?.['unfinished'] === 0)
  proof.check('campaigns are completed', counts?.['campaigns'] === 0)
  proof.check('no step of an automation ran twice', counts?.['steps'] === 0)
  const { balance } = await postroad.json<{ balance: { difference: number } }>('top')
  proof.check(
    'accepted = delivered + bounced + failed + cancelled + suppressed + waiting',
    balance.difference === 0,
    `${balance.difference} unaccounted for`,
  )
  const { out } = await postroad.run('doctor', '--json')
  const checks = JSON.parse(out) as { name: string; status: string; what: string }[]
  proof.checkNone(
    `doctor finds ${EXAMINED.join(', ')} in order`,
    checks
      .filter(({ name, status }) => EXAMINED.includes(name) && status === 'fail')
      .map(({ name, what }) => `${name}: ${what}`),
  )
}

/** Of the whole file, with the server stopped. */
function checkIntegrity(proof: Proof, { dataDir }: Initialised): void {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
  const found = handle.prepare('pragma integrity_check').pluck().all() as string[]
  const orphans = handle.prepare('pragma foreign_key_check').all()
  handle.close()
  proof.check('PRAGMA integrity_check finds nothing', found.join() === 'ok', found.slice(0, 3).join('; '))
  proof.check('PRAGMA foreign_key_check finds nothing', orphans.length === 0, `${orphans.length} rows`)
}

function countOf(load: Load, way: string): number {
  return [...load.offered.values()].filter(
    one => one.way === way && one.fate !== 'unknown' && one.fate !== 'refused',
  ).length
}

function sum(values: Iterable<number>): number {
  return [...values].reduce((total, value) => total + value, 0)
}
