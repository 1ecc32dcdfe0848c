/**
 * Keeps a server at 60 % of what it can do for a long time, and looks whether anything grows that should not.
 *
 * Capacity is measured first, on the same server with the same load, so it is that of the machine as it is. A third of the recipients are deferred at
 * their first offer; mail is opened and clicked; campaigns, an automation and webhooks run beside it, and in the middle comes an import
 * whose contacts get a campaign. After the warm-up, the first quarter, memory, descriptors, threads, waiting mail and latencies are to stay
 * where they are, and database and log to grow by as much for each mail as before.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { median, percentile } from '../../../bench/numbers.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { initialise, type Initialised, type Serving } from '../../support/program/process.js'
import { unusedPort } from '../../support/smtp/sink.js'
import { until } from '../../support/until.js'
import { Load } from '../load.js'
import { openMailbox, type Mailbox } from '../mailbox.js'
import { showProgress, type Proof } from '../proof.js'
import { Visitors } from '../visitors.js'
import { openWebhookLedger } from '../webhook-receiver.js'
import { chartsSvg, type Curve } from './charts.js'

export interface SoakOptions {
  readonly minutes: number
  readonly seed: number
  /** Of capacity. */
  readonly share: number
  /** Mails a second, in place of the share of a measured capacity. */
  readonly rate: number | undefined
}

export interface Soaked {
  readonly notes: readonly string[]
  readonly csv: string
  readonly svg: string
}

/** One second. */
interface Sample {
  readonly seconds: number
  readonly memory: number
  readonly descriptors: number
  readonly threads: number
  readonly database: number
  readonly walOctets: number
  readonly log: number
  readonly waiting: number
  readonly arrived: number
  /** Of REST sends answered in this second, ms; NaN if there were none. */
  readonly p50: number
  readonly p99: number
}

const DEFERRED_SHARE = 0.3
/** The second half counts: a site is given more connections the longer it takes mail. */
const CAPACITY_SECONDS = 40
/** Far more than it can take: clients wait for each other's answers and for the backlog. */
const CAPACITY_RATE = 20_000
/** Of the load: what comes by campaigns, and by contacts that enter the automation. */
const [CAMPAIGN_SHARE, CONTACT_SHARE] = [0.2, 0.1]
/** A campaign is as much as this many seconds of all load. */
const CAMPAIGN_SECONDS = 4
/** Contacts that are imported, as so many seconds of all load. */
const IMPORTED_SECONDS = 10
/** A second: each is a request of one client. */
const MOST_CONTACTS = 50
/** One of so many mails is read. */
const READ_ONE_IN = 10
const MEGABYTE = 1_024 * 1_024
const COUNT_EVERY_MS = 500
const SETTLE_MS = 300_000
const HTML =
  '<p>Grüße from the workshop. <a href="https://shop.example/a?id=1&amp;src=mail">Read on</a></p>' +
  '<p>This week three new things are ready, and the first of them costs no more than twelve.</p>'.repeat(20)

export async function runSoak(proof: Proof, { minutes, seed, share, rate }: SoakOptions): Promise<Soaked> {
  const mailbox = await openMailbox(proof, { seed, deferredShare: DEFERRED_SHARE })
  const webhooks = await openWebhookLedger(proof, { seed, refusedShare: 0 })
  const [httpPort, submissionPort] = [await unusedPort(), await unusedPort()]
  const postroad = await initialise(proof, {
    keepsLog: false,
    env: settings(mailbox.port, httpPort, submissionPort),
  })
  const limits = [
    'default_from_email=news@sender.test',
    'hourly_limit=0',
    'daily_limit=0',
    'track_opens=true',
    'track_clicks=true',
  ]
  await postroad.json('workspace', 'set', postroad.workspaceId, ...limits)
  await postroad.json('domain', 'add', 'sender.test', '--vouch', '--workspace', postroad.workspaceId)
  const server = await postroad.serve()
  let waiting = 0
  const counting = setInterval(() => (waiting = waitingMail(postroad)), COUNT_EVERY_MS)
  proof.teardown(() => clearInterval(counting))
  /** @param perSecond mails by all ways */
  const openLoad = (perSecond: number, campaignSize: number, number: number) =>
    new Load({
      ...{ httpPort, submissionPort, key: postroad.key, campaignSize, html: HTML },
      rate: perSecond * (1 - CAMPAIGN_SHARE - CONTACT_SHARE),
      contactRate: Math.min(MOST_CONTACTS, perSecond * CONTACT_SHARE),
      campaignEveryMs: (1_000 * CAMPAIGN_SECONDS) / CAMPAIGN_SHARE,
      ...{ random: new SeededRandom(seed + number), prefix: `run${number}` },
      waiting: () => waiting,
    })

  const trial = openLoad(CAPACITY_RATE, 0, 1)
  await trial.prepare()
  const capacity = rate === undefined ? await measureCapacity(trial, mailbox) : undefined
  await untilEmpty(postroad)
  const wanted = Math.max(1, Math.round(rate ?? (capacity ?? 0) * share))

  const load = openLoad(wanted, wanted * CAMPAIGN_SECONDS, 2)
  await load.prepare(webhooks.url)
  const visitors = new Visitors(server.baseUrl)
  mailbox.onMail = text => {
    if (mailbox.arrived % READ_ONE_IN === 0) visitors.note(text)
  }
  const seconds = Math.round(minutes * 60)
  const samples: Sample[] = []
  const marks = [{ at: Math.round(seconds / 2), what: 'import and campaign' }]
  let importing: Promise<void> | undefined
  const begunAt = mailbox.arrived
  load.start()
  for (let second = 1; second <= seconds; second += 1) {
    await sleep(1_000)
    samples.push(sample(second, { postroad, server, mailbox, load }))
    if (second === marks[0]?.at) importing = load.sendCampaign('imported', wanted * IMPORTED_SECONDS, true)
    showProgress(`${second} of ${seconds} s, ${mailbox.arrived - begunAt} mails arrived`)
  }
  const arrived = mailbox.arrived - begunAt
  await importing
  await load.stop()
  await untilEmpty(postroad)
  await visitors.stop()
  showProgress('')

  checkFlat(proof, samples)
  await checkMail(proof, { postroad, mailbox, load: [trial, load], visitors })
  proof.check('webhooks were called', webhooks.received > 0, webhooks.received)
  proof.check('the server stops with status 0', (await server.end('SIGTERM')).status === 0)
  const loadNote =
    capacity === undefined
      ? `${wanted} mails a second, as asked for`
      : `capacity ${Math.round(capacity)} mails a second, load ${wanted} a second (${Math.round(share * 100)} %)`
  return {
    notes: [
      `${minutes} minutes, seed ${seed}: ${loadNote}; ${arrived} mails arrived (${Math.round(arrived / seconds)}/s).`,
      `${mailbox.deferred} recipients were deferred at first; ${visitors.opens} opens, ${visitors.clicks} clicks, ${load.campaigns.size} campaigns, ${webhooks.received} webhooks.`,
    ],
    csv: csvOf(samples),
    svg: chartsSvg(`Soak of ${minutes} minutes: ${loadNote}`, curvesOf(samples), seconds, marks),
  }
}

function settings(port: number, httpPort: number, submissionPort: number): Record<string, string> {
  return {
    POSTROAD_HTTP_LISTEN: `127.0.0.1:${httpPort}`,
    POSTROAD_SUBMISSION_LISTEN: `127.0.0.1:${submissionPort}`,
    POSTROAD_SUBMISSION_REQUIRE_TLS: 'false',
    POSTROAD_MTA_ROUTES: JSON.stringify([{ domain: '*', host: '127.0.0.1', port, tls: 'none' }]),
    POSTROAD_MTA_WORKERS: '0',
    POSTROAD_WEBHOOKS_ALLOW_NETWORKS: '127.0.0.0/8',
    POSTROAD_HTTP_ANONYMOUS_RATE_LIMIT: '0',
    POSTROAD_HTTP_PUBLIC_RATE_LIMIT: '0',
  }
}

/** @returns mails a second that arrive while as many as possible are sent, after a warm-up */
async function measureCapacity(load: Load, mailbox: Mailbox): Promise<number> {
  load.start()
  await sleep((CAPACITY_SECONDS * 1_000) / 2)
  const [before, startedAt] = [mailbox.arrived, performance.now()]
  await sleep((CAPACITY_SECONDS * 1_000) / 2)
  const capacity = ((mailbox.arrived - before) * 1_000) / (performance.now() - startedAt)
  await load.stop()
  return capacity
}

function waitingMail(postroad: Initialised): number {
  return postroad.sql<{ waiting: number }>('select count(*) as waiting from queue')[0]?.waiting ?? 0
}

async function untilEmpty(postroad: Initialised): Promise<void> {
  await until(
    'the queue to be empty',
    async () => {
      await sleep(500)
      return waitingMail(postroad) === 0
    },
    SETTLE_MS,
    () => `${waitingMail(postroad)} wait`,
  )
}

interface SampleParts {
  readonly postroad: Initialised
  readonly server: Serving
  readonly mailbox: Mailbox
  readonly load: Load
}

function sample(seconds: number, { postroad, server, mailbox, load }: SampleParts): Sample {
  const status = readFileSync(`/proc/${server.pid}/status`, 'latin1')
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  const octets = (ending: string) => {
    try {
      return statSync(join(postroad.dataDir, `postroad.db${ending}`)).size
    } catch {
      return 0
    }
  }
  const latencies = load.latencies.splice(0).map(({ ms }) => ms)
  return {
    seconds,
    memory: field('VmRSS') * 1_024,
    descriptors: readdirSync(`/proc/${server.pid}/fd`).length,
    threads: field('Threads'),
    database: octets(''),
    walOctets: octets('-wal'),
    log: server.logOctets,
    waiting: waitingMail(postroad),
    arrived: mailbox.arrived,
    p50: percentile(latencies, 0.5),
    p99: percentile(latencies, 0.99),
  }
}

/** The second quarter, after the warm-up, beside the last. */
function checkFlat(proof: Proof, samples: readonly Sample[]): void {
  const quarter = Math.floor(samples.length / 4)
  const [early, late] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)]
  const of = (part: readonly Sample[], pick: (one: Sample) => number) =>
    median(part.map(pick).filter(value => !Number.isNaN(value)))
  const compare = (
    what: string,
    pick: (one: Sample) => number,
    factor: number,
    slack: number,
    shown: (value: number) => string,
  ) => {
    const [before, after] = [of(early, pick), of(late, pick)]
    proof.check(what, after <= before * factor + slack, `${shown(before)} -> ${shown(after)}`)
  }
  const plain = (value: number) => value.toFixed(0)
  const megabytes = (value: number) => `${(value / MEGABYTE).toFixed(1)} MB`
  const ms = (value: number) => `${value.toFixed(1)} ms`
  compare('memory stays (15 % + 32 MB)', one => one.memory, 1.15, 32 * MEGABYTE, megabytes)
  compare('descriptors stay (+ 30)', one => one.descriptors, 1, 30, plain)
  compare('threads stay (+ 2)', one => one.threads, 1, 2, plain)
  compare('waiting mail stays (twice + 500)', one => one.waiting, 2, 500, plain)
  compare('latency of sends stays, median (twice + 10 ms)', one => one.p50, 2, 10, ms)
  compare('latency of sends stays, p99 of each second (twice + 50 ms)', one => one.p99, 2, 50, ms)
  compare('the write-ahead log stays (twice + 16 MB)', one => one.walOctets, 2, 16 * MEGABYTE, megabytes)
  const perMail = (part: readonly Sample[], pick: (one: Sample) => number) => {
    const [first, last] = [part[0], part.at(-1)]
    if (!first || !last) return NaN
    return (pick(last) - pick(first)) / Math.max(1, last.arrived - first.arrived)
  }
  for (const [what, pick] of [
    ['database', one => one.database],
    ['log', one => one.log],
  ] as const satisfies readonly (readonly [string, (one: Sample) => number])[]) {
    const [before, after] = [perMail(early, pick), perMail(late, pick)]
    proof.check(
      `the ${what} grows by no more a mail than before (30 % + 500 octets)`,
      after <= before * 1.3 + 500,
      `${plain(before)} -> ${plain(after)} octets`,
    )
  }
}

interface MailParts {
  readonly postroad: Initialised
  readonly mailbox: Mailbox
  readonly load: readonly Load[]
  readonly visitors: Visitors
}

async function checkMail(proof: Proof, { postroad, mailbox, load, visitors }: MailParts): Promise<void> {
  const of = (fate: 'accepted' | 'cancelled' | 'refused') => load.flatMap(one => one.recipientsOf(fate))
  proof.checkNone(
    'every mail that was accepted arrived',
    of('accepted').filter(to => !mailbox.arrivals.has(to)),
  )
  proof.checkNone(
    'no mail that was cancelled arrived',
    of('cancelled').filter(to => mailbox.arrivals.has(to)),
  )
  proof.checkNone(
    'nothing arrived twice',
    [...mailbox.arrivals].filter(([, { length }]) => length > 1).map(([to]) => to),
  )
  proof.checkNone('no mail was refused', of('refused'))
  proof.checkNone(
    'no request had an answer that it should not have',
    load.flatMap(one => one.strange),
  )
  proof.checkNone('every visit was answered by a picture or a redirect', visitors.strange)
  const counted = () =>
    postroad.sql<{ opens: number; clicks: number }>(`select
      (select count(*) from events where kind = 'email.opened') as opens,
      (select count(*) from events where kind = 'email.clicked') as clicks`)[0]
  // Visits are counted a second later.
  await until('the visits to be counted', () => counted()?.clicks === visitors.clicks, 30_000).catch(() => {})
  const { opens = 0, clicks = 0 } = counted() ?? {}
  proof.check(
    'every open and click is counted',
    opens === visitors.opens && clicks === visitors.clicks,
    `${opens} of ${visitors.opens}, ${clicks} of ${visitors.clicks}`,
  )
  const { balance } = await postroad.json<{ balance: { difference: number } }>('top')
  proof.check(
    'the balance of all mail is even',
    balance.difference === 0,
    `${balance.difference} unaccounted for`,
  )
}

const COLUMNS = [
  'seconds',
  'memory',
  'descriptors',
  'threads',
  'database',
  'walOctets',
  'log',
  'waiting',
  'arrived',
  'p50',
  'p99',
] as const

function csvOf(samples: readonly Sample[]): string {
  const value = (number: number) => (Number.isNaN(number) ? '' : Number(number.toFixed(2)).toString())
  return (
    [COLUMNS.join(), ...samples.map(one => COLUMNS.map(name => value(one[name])).join())].join('\n') + '\n'
  )
}

function curvesOf(samples: readonly Sample[]): Curve[] {
  const curve = (
    title: string,
    unit: string,
    pick: (one: Sample, before: Sample | undefined) => number,
  ): Curve => ({
    ...{ title, unit },
    values: samples.map((one, at) => pick(one, samples[at - 1])),
  })
  return [
    curve('Mails that arrived', 'a second', (one, before) => (before ? one.arrived - before.arrived : NaN)),
    curve('Waiting mail', '', one => one.waiting),
    curve('Memory', 'MB', one => one.memory / MEGABYTE),
    curve('Descriptors', '', one => one.descriptors),
    curve('Latency of POST /email/send, median', 'ms', one => one.p50),
    curve('Latency of POST /email/send, p99', 'ms', one => one.p99),
    curve('Database', 'MB', one => one.database / MEGABYTE),
    curve('Write-ahead log', 'MB', one => one.walOctets / MEGABYTE),
    curve('Log', 'MB', one => one.log / MEGABYTE),
    curve('Threads', '', one => one.threads),
  ]
}
