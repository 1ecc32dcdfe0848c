/**
 * The queue under random schedules: the real queue manager, pacing, claims and stores of one to three nodes, with the delays,
 * failures, replies, operators and restarts that a seed says. The same seed gives the same run.
 *
 * After every step:
 *
 *   every claim is in hand       a claimed message is being delivered, or was claimed, or ended, a moment ago
 *   what may start starts        no site with due mail stands still while a delivery could start
 *   nothing twice                no message is offered by two deliveries at once, or again after it was delivered
 *   counts equal rows            accepted mail = ended mail + queue rows
 *
 * and when everything accepts, the queue empties.
 */
import type { Database } from '../../src/db/database.js'
import type { Deferred, Outcome } from '../../src/mail/outcome.js'
import { differenceOf, readMailBalance } from '../../src/messages/mail-totals-store.js'
import { recoverOrphans } from '../../src/queue/claiming/crash-recovery.js'
import { JobLoader } from '../../src/queue/claiming/job-loader.js'
import type { DeliveryAgent, DeliveryJob, SiteFacts } from '../../src/queue/delivery-agent.js'
import type { NodeShares } from '../../src/queue/node-shares.js'
import { deleteEntries, retryNow, setHeld } from '../../src/queue/operator/queue-admin-store.js'
import type { Schedule } from '../../src/queue/pacing/schedule.js'
import { shareOfSite } from '../../src/queue/pacing/site-share.js'
import { QueueManager } from '../../src/queue/queue-manager.js'
import { laneOf } from '../../src/queue/queue-store.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'
import { FakeLog } from '../../src/world/fake-log.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import {
  addWorkspace,
  DAY_MS,
  enqueue,
  laneTo,
  NOW,
  type ClaimAccepted,
  type Letter,
} from '../support/mailroom.js'
import { bounced, deferred, delivered, tried, unreachable } from '../support/outcomes.js'
import { openTables, type Fate, type NodeDatabase, type SharedTables } from './simulated-database.js'

export interface SimulationOptions {
  readonly seed: number
  /** How long things go wrong, ms; default 90 s. */
  readonly stormMs?: number
}

/** What a run found wrong: the first thing only. */
export interface Finding {
  readonly seed: number
  /** Ms since the run began. */
  readonly at: number
  readonly what: string
  /** What kind of run it was. */
  readonly character: string
}

const STEP_MS = 100
/** A claim that nothing delivers is an orphan after this: longer than any pause of the queue and any chain of delays here. */
const ORPHANED_MS = 15_000
/** Mail that may start has started by then. */
const STARTED_MS = 15_000
/** After the storm, everything accepts at once. */
const CALM_MS = 240_000
const RETRY = { firstMs: 1_000, factor: 2, maxMs: 8_000 }
const SHARES_LOOK_MS = 1_000
const TURN_MS = 5_000

class Wrong extends Error {}

/** @returns what went wrong, undefined if nothing did */
export async function simulateQueue({
  seed,
  stormMs = 90_000,
}: SimulationOptions): Promise<Finding | undefined> {
  const tables = await openTables()
  const run = new Run(seed, tables)
  try {
    await run.begin()
    await run.storm(stormMs)
    await run.calm()
    return undefined
  } catch (error) {
    if (!(error instanceof Wrong)) throw error
    return { seed, at: run.clock.monotonic(), what: error.message, character: run.described }
  } finally {
    await run.end()
    await tables.close()
  }
}

/** A random character for the run: few kinds of trouble each, so that each kind is also seen alone. */
interface Character {
  readonly nodes: number
  readonly connections: number
  /** Of statements and commits, ms. */
  readonly delayMs: number
  readonly failing: number
  readonly losing: number
  readonly crashes: number
  readonly operator: number
}

type Mood = 'accepts' | 'slows down' | 'is down' | 'greylists' | 'is slow' | 'refuses'
const MOODS: readonly Mood[] = [
  'accepts',
  'slows down',
  'slows down',
  'is down',
  'greylists',
  'is slow',
  'refuses',
]

interface SimulatedSite {
  readonly facts: SiteFacts
  readonly destinations: readonly string[]
  readonly latencyMs: number
  mood: Mood
  /** Mails accepted since it last asked for a pause. */
  accepted: number
  readonly pauseAfter: number
  readonly pauseMs: number
  closedUntil: number
}

interface Delivering {
  readonly node: SimulatedNode
  readonly site: SimulatedSite
}

class Run {
  readonly clock = new FakeClock()
  private readonly random: SeededRandom
  private readonly tables: SharedTables
  private readonly character: Character
  private readonly sites: SimulatedSite[]
  private readonly nodes: SimulatedNode[] = []
  private readonly delivering = new Map<string, Delivering>()
  private readonly ended = new Set<string>()
  /** When each message was first seen claimed and not being delivered, ms. */
  private readonly undelivered = new Map<string, number>()
  /** When each site was first seen able to start and not starting, ms. */
  private readonly idle = new Map<string, number>()
  private incarnations = 0
  private messages = 0
  private isCalm = false
  private wrong: string | undefined
  private readonly operator: NodeDatabase

  constructor(seed: number, tables: SharedTables) {
    this.random = new SeededRandom(seed * 7_919)
    this.tables = tables
    this.character = {
      nodes: this.oneOf([1, 1, 2, 3]),
      connections: this.oneOf([3, 10, 30]),
      delayMs: this.oneOf([1, 20, 150, 400]),
      failing: this.oneOf([0, 0, 0.03]),
      losing: this.oneOf([0, 0, 0.03]),
      crashes: this.oneOf([0, 0, 1]),
      operator: this.oneOf([0, 0.1, 0.3]),
    }
    let names = 0
    this.sites = Array.from({ length: this.upTo(8) + 1 }, (_, n) => ({
      facts: { name: `site${n}`, connections: this.oneOf([1, 1, 2, 5]), messagesPerMinute: 0 },
      destinations: Array.from({ length: this.oneOf([1, 1, 4]) }, () => `d${(names += 1)}.example`),
      latencyMs: this.oneOf([1, 30, 400]),
      mood: 'accepts',
      accepted: 0,
      pauseAfter: this.oneOf([3, 10]),
      pauseMs: this.oneOf([100, 2_000]),
      closedUntil: 0,
    }))
    this.operator = tables.open({ delay: async () => {}, fate: () => 'commits' })
  }

  async begin(): Promise<void> {
    await addWorkspace(this.operator)
    await this.enqueueSome(60, undefined)
    for (let n = 0; n < this.character.nodes; n += 1) await this.startNode()
  }

  async storm(ms: number): Promise<void> {
    for (const end = this.clock.now() + ms; this.clock.now() < end;) {
      await this.step()
      if (this.chance(0.08)) await this.enqueueSome(this.upTo(12) + 1, this.oneOf([undefined, ...this.nodes]))
      if (this.chance(0.15)) this.oneOf(this.sites).mood = this.oneOf(MOODS)
      if (this.chance(this.character.operator * 0.3)) await this.operate()
      if (this.chance(this.character.crashes * 0.004)) await this.restart(this.oneOf(this.nodes))
    }
  }

  /** Everything accepts, nothing fails any more: the queue has to empty. */
  async calm(): Promise<void> {
    this.isCalm = true
    for (const site of this.sites)
      Object.assign(site, { mood: 'accepts', closedUntil: 0, pauseAfter: Infinity })
    await this.operator.write(async tx => {
      tx.changed('queue')
      await setHeld(tx.db, {}, false)
    })
    for (const end = this.clock.now() + CALM_MS; this.clock.now() < end;) {
      await this.step()
      if ((await this.rowsLeft()) === 0 && this.delivering.size === 0) return this.checkEnd()
    }
    throw new Wrong(`${await this.rowsLeft()} messages are still queued although everything accepts`)
  }

  async end(): Promise<void> {
    for (const node of this.nodes) node.kill()
    await this.clock.advance(60_000)
  }

  private async step(): Promise<void> {
    await this.clock.advance(STEP_MS)
    await this.check()
    if (this.wrong !== undefined) throw new Wrong(this.wrong)
  }

  private async check(): Promise<void> {
    const now = this.clock.now()
    const rows = await this.tables.db
      .selectFrom('queue')
      .select(['message_id', 'claimed_by', 'destination', 'next_attempt_at', 'is_held'])
      .execute()
    const claimed = new Set<string>()
    const due = new Map<SimulatedSite, number>()
    for (const row of rows) {
      const site = this.siteOf(row.destination)
      const { message_id: id } = row
      if (row.claimed_by !== null) {
        const isDelivering =
          this.delivering.has(id) || [...this.delivering.values()].some(one => one.site === site)
        if (!isDelivering) claimed.add(id)
      } else if (row.is_held === 0 && row.next_attempt_at <= now) due.set(site, (due.get(site) ?? 0) + 1)
    }
    forgetOthers(this.undelivered, claimed)
    for (const id of claimed) {
      const since = this.undelivered.get(id) ?? now
      this.undelivered.set(id, since)
      if (now - since > ORPHANED_MS + 100 * this.character.delayMs)
        throw new Wrong(`${id} is claimed, and nothing delivers it`)
    }
    const standing = new Set<string>()
    for (const [site, count] of due) {
      const { name } = site.facts
      if (count > 0 && this.mayStart(site)) standing.add(name)
    }
    forgetOthers(this.idle, standing)
    for (const name of standing) {
      const since = this.idle.get(name) ?? now
      this.idle.set(name, since)
      if (now - since > STARTED_MS + 2 * TURN_MS * this.nodes.length + 100 * this.character.delayMs)
        throw new Wrong(`${name} has due mail, and nothing starts`)
    }
    const difference = differenceOf(await readMailBalance(this.tables.db))
    if (difference !== 0) throw new Wrong(`${difference} messages are counted wrong`)
  }

  /** Nothing is being delivered there, no node is told to wait, and connections are free. */
  private mayStart(site: SimulatedSite): boolean {
    for (const one of this.delivering.values()) if (one.site === site) return false
    if (this.delivering.size >= this.character.connections / 2) return false
    return this.nodes.every(({ manager }) =>
      manager.listSites().every(state => state.name !== site.facts.name || state.backoffUntil === undefined),
    )
  }

  private async checkEnd(): Promise<void> {
    const twice = await this.tables.db
      .selectFrom('attempts')
      .select(['message_id', 'number'])
      .groupBy(['message_id', 'number'])
      .having(e => e.fn.countAll(), '>', 1)
      .executeTakeFirst()
    if (twice) throw new Wrong(`attempt ${twice.number} of ${twice.message_id} is recorded twice`)
    for (const { manager } of this.nodes) {
      const states = manager.listSites().filter(({ active }) => active > 0)
      if (states.length > 0 && this.delivering.size === 0 && manager.activeCount > 0)
        throw new Wrong(`the queue is empty, but ${JSON.stringify(states)} count deliveries`)
    }
  }

  private async rowsLeft(): Promise<number> {
    const { count } = await this.tables.db
      .selectFrom('queue')
      .select(e => e.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    return count
  }

  private async startNode(): Promise<void> {
    const id = `node${(this.incarnations += 1)}`
    const node = new SimulatedNode(this, id)
    await this.tables.db.insertInto('nodes').values(nodeRow(id, this.clock.now())).execute()
    this.nodes.push(node)
    node.start()
  }

  private async restart(node: SimulatedNode): Promise<void> {
    node.kill()
    this.nodes.splice(this.nodes.indexOf(node), 1)
    for (const [id, one] of this.delivering) if (one.node === node) this.delivering.delete(id)
    // What it delivered and did not record may be delivered again: nobody can know.
    const unrecorded = this.tables.db
      .selectFrom('queue')
      .select('message_id')
      .where('claimed_by', '=', node.id)
    for (const { message_id: id } of await unrecorded.execute()) this.ended.delete(id)
    await this.tables.db.deleteFrom('nodes').where('id', '=', node.id).execute()
    await this.operator.write(tx =>
      recoverOrphans(tx, { clock: this.clock, random: this.random, log: new FakeLog(), retry: RETRY }),
    )
    await this.startNode()
  }

  private async operate(): Promise<void> {
    const { destinations } = this.oneOf(this.sites)
    const act = this.oneOf(['hold', 'release', 'release', 'retry', 'delete'])
    await this.operator.write(async tx => {
      tx.changed('queue')
      if (act === 'hold') await setHeld(tx.db, { destinations }, true)
      else if (act === 'release') await setHeld(tx.db, { destinations }, false)
      else if (act === 'retry') await retryNow(tx.db, { destinations }, this.clock.now())
      else if (this.chance(0.3)) await deleteEntries(tx, { destinations }, this.clock.now(), true)
    })
    if (act === 'retry' && this.chance(0.5)) this.oneOf(this.nodes).retry(new Set(destinations))
  }

  /** @param node that accepted them; none: another process */
  private async enqueueSome(count: number, node: SimulatedNode | undefined): Promise<void> {
    const site = this.oneOf(this.sites)
    const destination = this.oneOf(site.destinations)
    const now = this.clock.now()
    const letters = Array.from({ length: count }, () => {
      const id = `m${String((this.messages += 1)).padStart(5, '0')}`
      const to = node ? destination : this.oneOf(this.oneOf(this.sites).destinations)
      return { id, to: `${id}@${to}`, dueAt: now }
    })
    if (node && this.chance(0.6)) return this.accept(node, letters)
    await enqueue(node ? this.operator : reporting(this.operator), letters)
    node?.note(laneTo(destination), now)
  }

  /** As clients submit it: one by one, in transactions of the node, which may claim it as it accepts it. */
  private accept(node: SimulatedNode, letters: readonly Letter[]): void {
    for (const letter of letters)
      node.accept(letter).catch(async () => {
        // The answer may be lost, and the mail stored: others notice that rows have changed.
        await this.operator.write(async tx => tx.changed('queue'))
      })
  }

  deliver(node: SimulatedNode, job: DeliveryJob): Delivering {
    const { messageId: id } = job
    const site = this.siteOf(job.recipient.slice(job.recipient.indexOf('@') + 1))
    const other = this.delivering.get(id)
    if (other) this.wrong ??= `${id} is delivered by ${other.node.id} and ${node.id} at once`
    if (this.ended.has(id)) this.wrong ??= `${id} is offered again after it was delivered`
    const delivering = { node, site }
    this.delivering.set(id, delivering)
    return delivering
  }

  delivered(id: string, delivering: Delivering, outcome: Outcome): void {
    if (this.delivering.get(id) === delivering) this.delivering.delete(id)
    if (outcome.kind === 'delivered') this.ended.add(id)
  }

  answerOf(site: SimulatedSite): Outcome {
    if (this.isCalm) return delivered
    switch (site.mood) {
      case 'is down':
        return unreachable
      case 'greylists':
        return this.chance(0.5) ? deferred : delivered
      case 'refuses':
        return this.chance(0.2) ? bounced : delivered
      case 'slows down':
        if (this.clock.now() < site.closedUntil) return askedToWait
        site.accepted += 1
        if (site.accepted % site.pauseAfter === 0) site.closedUntil = this.clock.now() + site.pauseMs
        return delivered
      case 'accepts':
      case 'is slow':
        return delivered
    }
  }

  latencyOf({ mood, latencyMs }: SimulatedSite): number {
    if (this.isCalm) return this.upTo(40)
    return mood === 'is slow' ? this.upTo(15_000) : this.upTo(2 * latencyMs)
  }

  async delay(): Promise<void> {
    const delayMs = this.isCalm ? 20 : this.character.delayMs
    await this.clock.sleep(this.chance(0.02) ? 10 * delayMs * this.random.fraction() : this.upTo(delayMs))
  }

  fate(): Fate {
    if (this.isCalm) return 'commits'
    if (this.chance(this.character.failing)) return 'fails'
    return this.chance(this.character.losing) ? 'commits, and its answer is lost' : 'commits'
  }

  openDatabase(): NodeDatabase {
    return this.tables.open({ delay: () => this.delay(), fate: () => this.fate() })
  }

  locate(destination: string): SiteFacts {
    return this.siteOf(destination).facts
  }

  /** Destinations go round the nodes, by name. */
  isOwnedBy(destination: string, node: SimulatedNode): boolean {
    const number = Number(/\d+/.exec(destination)?.[0])
    return this.nodes[number % this.nodes.length] === node
  }

  shareOf(facts: SiteFacts, node: SimulatedNode) {
    const { destinations } = this.sites.find(site => site.facts === facts) ?? { destinations: [] }
    const users = this.nodes.filter(one => destinations.some(name => this.isOwnedBy(name, one)))
    if (users.length < 2 || !users.includes(node)) return undefined
    const turn = Math.floor(this.clock.now() / TURN_MS)
    return shareOfSite(facts, { nodes: users.length, rank: users.indexOf(node), turn })
  }

  /** What other nodes have told of back-offs. */
  backoffsOf(node: SimulatedNode): Map<string, number> {
    const found = new Map<string, number>()
    for (const other of this.nodes)
      if (other !== node)
        for (const { name, backoffUntil } of other.manager.listSites())
          if (backoffUntil !== undefined) found.set(name, backoffUntil - this.clock.now())
    return found
  }

  get connections(): number {
    return this.character.connections
  }

  get described(): string {
    return Object.entries(this.character)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')
  }

  get nodeCount(): number {
    return this.nodes.length
  }

  private siteOf(destination: string): SimulatedSite {
    const site = this.sites.find(({ destinations }) => destinations.includes(destination))
    if (!site) throw new Error(`no site serves ${destination}`)
    return site
  }

  private chance(share: number): boolean {
    return this.random.fraction() < share
  }

  private upTo(most: number): number {
    return Math.floor(this.random.fraction() * most)
  }

  private oneOf<T>(values: readonly T[]): T {
    const value = values[this.upTo(values.length)]
    if (value === undefined && !values.includes(value as T)) throw new Error('nothing to choose from')
    return value as T
  }
}

/** One process: a queue manager over its own way to the tables, which can be killed at any moment. */
class SimulatedNode {
  readonly id: string
  readonly manager: QueueManager
  private readonly run: Run
  private readonly database: NodeDatabase
  private isKilled = false

  constructor(run: Run, id: string) {
    this.run = run
    this.id = id
    this.database = run.openDatabase()
    const { clock } = run
    this.manager = new QueueManager({
      database: this.database,
      clock,
      log: new FakeLog(),
      random: new SeededRandom(id.length),
      agent: this.agent(),
      jobs: new JobLoader({
        reader: this.database.reader,
        clock,
        returnPath: message => `bounce+${message}@mail.example.net`,
        readSigningKeys: async () => new Map(),
      }),
      locateSite: async destination => {
        await run.delay()
        return run.locate(destination)
      },
      policy: { retry: RETRY, connections: run.connections },
      incarnation: id,
      shares: this.shares(),
      onSettled: () => {},
    })
  }

  start(): void {
    void this.tryStart()
  }

  private async tryStart(): Promise<void> {
    try {
      await this.manager.start()
    } catch {
      await this.run.clock.sleep(1_000)
      if (!this.isKilled) await this.tryStart()
    }
  }

  kill(): void {
    this.isKilled = true
    this.database.cut()
  }

  note(lane: string, dueAt: number): void {
    if (!this.isKilled) this.manager.noteEnqueued(lane, dueAt)
  }

  async accept(letter: Letter): Promise<void> {
    const claimAccepted: ClaimAccepted = (tx, entries) => this.manager.claimAccepted(tx, entries)
    const due = { ...letter, dueAt: NOW, expiresAt: this.run.clock.now() + DAY_MS }
    for (const { claim, nextAttemptAt, ...entry } of await enqueue(this.database, [due], {}, claimAccepted))
      if (!claim) this.note(laneOf({ nextAttemptAt, ...entry }), nextAttemptAt)
  }

  retry(destinations: ReadonlySet<string>): void {
    this.manager.retryNow(destinations).catch(() => {})
  }

  private agent(): DeliveryAgent {
    const { run } = this
    return {
      deliver: async (job, signal) => {
        const delivering = run.deliver(this, job)
        await run.clock.sleep(run.latencyOf(delivering.site), signal)
        if (this.isKilled) return new Promise<never>(() => {})
        const outcome = signal.aborted ? brokenOff : run.answerOf(delivering.site)
        run.delivered(job.messageId, delivering, outcome)
        return outcome
      },
      close: async () => {},
    }
  }

  /** As `NodeShares`, whose statements only PostgreSQL has: what the nodes tell each other arrives a second later. */
  private shares(): NodeShares {
    const { run } = this
    const look = (schedule: Schedule, onChanged: () => void): void => {
      run.clock.after(SHARES_LOOK_MS, () => {
        if (this.isKilled) return
        schedule.reshare(run.backoffsOf(this))
        if (this.knownNodes !== run.nodeCount) onChanged()
        this.knownNodes = run.nodeCount
        look(schedule, onChanged)
      })
    }
    const shares: Pick<NodeShares, 'owns' | 'partOf' | 'shareOf' | 'stop'> & { start: typeof look } = {
      owns: destination => run.isOwnedBy(destination, this),
      partOf: () => undefined,
      shareOf: facts => run.shareOf(facts, this),
      start: look,
      stop: () => {},
    }
    return shares as unknown as NodeShares
  }

  private knownNodes = 0
}

const askedToWait: Deferred = {
  ...deferred,
  scope: 'source',
  cause: 'reputation',
  subtype: 'rate_limited',
  summary: 'mx.x.example answered 450 4.7.1 slow down',
  reply: { code: 450, enhanced: '4.7.1', text: 'slow down' },
  tried: [tried('mail')],
}

const brokenOff: Deferred = { ...deferred, subtype: 'shutdown', summary: 'broken off', tried: [] }

function nodeRow(id: string, now: number) {
  return {
    id,
    name: id,
    roles: 'mta',
    is_stopping: 0 as const,
    started_at: now,
    alive_until: now + 86_400_000,
  }
}

/** Reports the change as another process does. */
function reporting(database: Database): Database {
  return {
    ...database,
    write: work =>
      database.write(tx => {
        tx.changed('queue')
        return work(tx)
      }),
  }
}

function forgetOthers(kept: Map<string, number>, seen: ReadonlySet<string>): void {
  for (const key of kept.keys()) if (!seen.has(key)) kept.delete(key)
}
