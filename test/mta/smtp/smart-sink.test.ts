/** The whole way from queue to socket, against servers that behave like real providers. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Database } from '../../../src/db/database.js'
import { openSiteLocator } from '../../../src/mta/routing/locate-site.js'
import { listAttempts } from '../../../src/messages/attempt-store.js'
import { JobLoader } from '../../../src/queue/claiming/job-loader.js'
import { findAnyMessage } from '../../../src/messages/message-store.js'
import { listEntries } from '../../../src/queue/operator/queue-admin-store.js'
import { QueueManager } from '../../../src/queue/queue-manager.js'
import { fakeDns, type FakeZone } from '../../../src/world/dns/fake-dns.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { sqliteDatabase } from '../../support/db/database.js'
import { often } from '../../support/long.js'
import { enqueue, NOW } from '../../support/mailroom.js'
import { testMta, timeouts } from '../../support/smtp/mta.js'
import { certificate } from '../../support/smtp/scripted-server.js'
import {
  openSmartSink,
  PATIENCE_SECONDS,
  returnPathOf,
  type SinkHabits,
  type SmartSink,
  type Standing,
  type Trouble,
} from '../../support/smtp/smart-sink.js'
import { workUnderWay } from '../../support/turns.js'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** A provider: the domains it serves and how it behaves. */
interface Provider extends SinkHabits {
  readonly domains: readonly string[]
}

interface Setting {
  readonly providers: Readonly<Record<string, Provider>>
  readonly connections: number
}

const EXPIRES_AFTER_MS = 12 * HOUR_MS
/** Open all the time; and the next turn of the loop is our own. */
const SOCKETS: ReadonlySet<string> = new Set(['TCPServerWrap', 'TCPSocketWrap', 'Immediate'])

/** Real sockets, real queue, a declared DNS and a manual clock that advances when everything is idle. */
async function openWorld(t: Test, { providers, connections }: Setting) {
  const names = Object.keys(providers)
  const zone: FakeZone = {}
  for (const [index, name] of names.entries()) {
    zone[`mx.${name}`] = { A: [`192.0.2.${index + 1}`] }
    for (const domain of providers[name]?.domains ?? []) zone[domain] = { MX: [`10 mx.${name}`] }
  }
  const places: Record<string, { port: number }> = {}
  const { agent, clock } = testMta(t, places, {
    zone,
    trusted: certificate.cert,
    timeouts: { ...timeouts, finalDotMs: 10 * MINUTE_MS },
  })
  const sinks: Record<string, SmartSink> = {}
  for (const [index, name] of names.entries()) {
    const sink = await openSmartSink(t, clock, providers[name]!)
    sinks[name] = sink
    places[`192.0.2.${index + 1}`] = { port: sink.port }
  }
  const database = await sqliteDatabase(t)
  let settled = 0
  const runner = new QueueManager({
    database,
    clock,
    agent,
    log: new FakeLog(),
    random: new SeededRandom(7),
    jobs: new JobLoader({
      reader: database.reader,
      clock,
      returnPath: (_, recipient) => returnPathOf(recipient),
      readSigningKeys: async () => new Map(),
    }),
    locateSite: openSiteLocator({
      resolver: fakeDns(zone),
      routes: [],
      sites: [],
      connectionsPerSite: 20,
    }),
    policy: { retry: { firstMs: MINUTE_MS, factor: 1.5, maxMs: 30 * MINUTE_MS }, connections },
    incarnation: 'this run',
    onSettled: () => (settled += 1),
  })
  t.teardown(async () => {
    const stopped = runner.stop(0)
    for (const sink of Object.values(sinks)) sink.hangUp()
    await stopped
  })

  const activity = () =>
    settled + runner.activeCount + Object.values(sinks).reduce((sum, sink) => sum + sink.activity, 0)
  /** Until nothing has moved for some turns, in which what was written to a socket is read, and no timer or file is waited for. */
  const comeToRest = async () => {
    let seen = activity()
    for (let quietTurns = 0; quietTurns < 25; quietTurns += 1) {
      await nextTurn()
      const now = activity()
      if (now !== seen || workUnderWay().some(kind => !SOCKETS.has(kind))) quietTurns = 0
      seen = now
    }
  }
  const playUntil = async (isOver: () => Promise<boolean>) => {
    for (const limit = clock.now() + 2 * EXPIRES_AFTER_MS; ;) {
      await comeToRest()
      if (await isOver()) return
      if (clock.now() > limit) throw new Error('it never ended')
      // Small against every timeout of a dialogue, so that none of them fires in the middle of a lively one.
      await clock.advance(runner.activeCount > 0 ? 3_000 : 60_000)
    }
  }
  return { database, clock, runner, sinks, playUntil }
}

function recipients(domain: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `r${n + 1}@${domain}`)
}

async function enqueueAll(database: Database, addresses: readonly string[]): Promise<void> {
  await enqueue(
    database,
    addresses.map(to => ({ id: to, to, expiresAt: NOW + EXPIRES_AFTER_MS })),
  )
}

async function isEmpty(database: Database): Promise<boolean> {
  return (await listEntries(database.reader, {}, 1)).length === 0
}

const everyTrouble: Record<Trouble, number> = {
  '421 at MAIL': 4,
  '421 at RCPT': 4,
  '421 at the dot': 4,
  greylisted: 15,
  'mailbox full': 4,
  'server busy': 4,
  'asks for patience': 2,
  'drops before the dot': 4,
  'drops after the dot': 5,
  'stalls in DATA': 3,
}

for (const seed of [1, 2].slice(0, often(1, 2)))
  t.test(`every message ends exactly once and correctly, whatever providers do (seed ${seed})`, async t => {
    const providers: Record<string, Provider> = {
      'big.example': {
        domains: ['a.example', 'b.example', 'c.example'],
        seed,
        standings: { unknown: 8, 'always full': 3 },
        troubles: everyTrouble,
        slowGreetingEvery: 7,
      },
      'strict.example': {
        domains: ['strict.example'],
        seed,
        standings: { 'blocklists us': 15, unknown: 10 },
        troubles: { 'asks for patience': 8, greylisted: 40 },
        startTls: 'works',
      },
      'shaky.example': {
        domains: ['shaky.example'],
        seed,
        troubles: { 'drops after the dot': 15, 'drops before the dot': 15, '421 at the dot': 10 },
        startTls: 'broken',
      },
      'calm.example': { domains: ['calm.example'], seed },
    }
    const { database, runner, sinks, playUntil } = await openWorld(t, { providers, connections: 40 })
    const addresses: { to: string; sink: SmartSink }[] = []
    for (const [name, { domains }] of Object.entries(providers))
      for (const domain of domains)
        for (const to of recipients(domain, 50)) addresses.push({ to, sink: sinks[name]! })
    await enqueueAll(
      database,
      addresses.map(({ to }) => to),
    )
    await runner.start()
    await playUntil(() => isEmpty(database))

    for (const { to, sink } of addresses) {
      const standing = sink.standingOf(to)
      t.same(await fateOf(database, to, sink), RIGHT_FATE[standing], `${to}: ${standing}`)
    }

    const played = new Map<string, number>()
    for (const sink of Object.values(sinks))
      for (const [trouble, count] of sink.played) played.set(trouble, (played.get(trouble) ?? 0) + count)
    for (const trouble of Object.keys(everyTrouble)) t.ok((played.get(trouble) ?? 0) > 0, trouble)
    const standings = new Set(addresses.map(({ to, sink }) => sink.standingOf(to)))
    t.same([...standings].sort(), ['always full', 'blocklists us', 'takes mail', 'unknown'])
    const strict = sinks['strict.example']!
    t.ok(strict.askedAt.length > 0)
    t.same(
      await begunWhileAskedToWait(database, recipients('strict.example', 50), strict.askedAt),
      [],
      'a site that asks for patience is left alone',
    )
  })

interface Fate {
  readonly status: string | undefined
  readonly bounceType: string | null
  /** Of the last attempt. */
  readonly cause: string | null
  /** How those attempts ended that were final by themselves. */
  readonly ends: readonly string[]
  /** Copies whose final dot was answered; any others were dropped after the dot. */
  readonly answered: number
  /** Different Message-IDs among all copies. */
  readonly messageIds: number
}

async function fateOf(database: Database, to: string, sink: SmartSink): Promise<Fate> {
  const message = await findAnyMessage(database.reader, to)
  const attempts = await listAttempts(database.reader, to)
  const copies = sink.taken.filter(({ recipient }) => recipient === to)
  return {
    status: message?.status,
    bounceType: message?.bounceType ?? null,
    cause: attempts.at(-1)?.classification?.cause ?? null,
    ends: attempts.map(({ kind }) => kind).filter(kind => kind !== 'deferred'),
    answered: copies.filter(({ isAnswered }) => isAnswered).length,
    messageIds: new Set(copies.map(({ messageId }) => messageId)).size,
  }
}

const NEVER_TAKEN = { status: 'bounced', answered: 0, messageIds: 0 }

/** What has to become of a recipient's message, by what the receiver is to it. */
const RIGHT_FATE: Readonly<Record<Standing, Fate>> = {
  // A copy whose reply was lost has the same Message-ID, so receivers can recognize it.
  'takes mail': {
    status: 'delivered',
    bounceType: null,
    cause: null,
    ends: ['delivered'],
    answered: 1,
    messageIds: 1,
  },
  unknown: { ...NEVER_TAKEN, bounceType: 'permanent', cause: 'recipient', ends: ['bounced'] },
  'blocklists us': { ...NEVER_TAKEN, bounceType: 'permanent', cause: 'reputation', ends: ['bounced'] },
  // Put off until it expired.
  'always full': { ...NEVER_TAKEN, bounceType: 'transient', cause: 'recipient', ends: [] },
}

/** Attempts that began well within the time that the site had asked for; what was under way by then may end. */
async function begunWhileAskedToWait(
  database: Database,
  addresses: readonly string[],
  askedAt: readonly number[],
): Promise<string[]> {
  const begun: string[] = []
  for (const to of addresses)
    for (const { startedAt } of await listAttempts(database.reader, to))
      if (askedAt.some(at => startedAt > at + 5_000 && startedAt < at + PATIENCE_SECONDS * 1_000))
        begun.push(`${to} ${startedAt - NOW}`)
  return begun
}

t.test('a hanging site does not delay others', async t => {
  const { database, runner, sinks, playUntil } = await openWorld(t, {
    connections: 24,
    providers: {
      'stuck.example': { domains: ['stuck.example'], seed: 1, troubles: { 'stalls in DATA': 100 } },
      'calm.example': { domains: ['calm.example'], seed: 1 },
    },
  })
  const calm = recipients('calm.example', 100)
  const stuck = recipients('stuck.example', 100)
  await enqueueAll(database, stuck)
  await enqueueAll(database, calm)
  await runner.start()
  await playUntil(async () => (sinks['calm.example']?.taken.length ?? 0) === calm.length)
  const ended = await Promise.all(stuck.map(to => listAttempts(database.reader, to)))
  t.same(ended.flat(), [], 'all of it was delivered before a single one of the others had ended')
  t.ok((sinks['stuck.example']?.played.get('stalls in DATA') ?? 0) > 0)
})
