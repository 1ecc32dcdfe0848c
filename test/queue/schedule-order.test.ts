/**
 * The schedule hears of commits, looks and outcomes in any order: whatever that is, no mail is left lying, and nothing is kept of
 * mail that is gone.
 *
 * A queue is played through with its rows in a map. What the schedule is told stands in a heap of things said and not yet heard,
 * and is heard in an order that chance decides.
 */
import t from 'tap'
import { PRIORITIES, type Priority } from '../../src/messages/mail-origin.js'
import { laneKey } from '../../src/queue/lane.js'
import type { PaceSignal } from '../../src/queue/pacing/site-pace.js'
import { Schedule } from '../../src/queue/pacing/schedule.js'
import type { Turn } from '../../src/queue/pacing/site.js'
import { SeededRandom } from '../../src/world/fake-random.js'
import { FakeClock } from '../../src/world/time/fake-clock.js'

interface Row {
  readonly lane: string
  dueAt: number
  isInHand: boolean
}

interface UnderWay {
  readonly turn: Turn
  readonly row: Row
}

const DESTINATIONS = ['a.hosted.example', 'b.hosted.example', 'alone.example', 'other.example']
const PRIORITY: readonly Priority[] = [PRIORITIES.transactional, PRIORITIES.campaign]
const SIGNALS: readonly PaceSignal[] = [
  { kind: 'success' },
  { kind: 'success' },
  { kind: 'neutral' },
  { kind: 'unreachable' },
  { kind: 'asked', waitMs: 20_000 },
]

class PlayedQueue {
  readonly rows = new Set<Row>()
  readonly clock = new FakeClock()
  readonly schedule: Schedule
  private readonly random: SeededRandom
  private readonly unheard: (() => void)[] = []
  private readonly underWay: UnderWay[] = []

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    this.schedule = new Schedule({
      clock: this.clock,
      backoff: { firstMs: 30_000, maxMs: 900_000 },
      connections: 12,
      locateSite: destination =>
        new Promise(resolve =>
          this.unheard.push(() =>
            resolve({
              name: destination.endsWith('.hosted.example') ? 'mx.hoster.example' : destination,
              connections: 3,
              messagesPerMinute: 0,
            }),
          ),
        ),
      onChange: () => {},
    })
  }

  /** One thing happens; what it is chance decides. */
  async happen(): Promise<void> {
    const happenings: readonly (() => void | Promise<void>)[] = [
      () => this.accept(),
      () => this.hear(),
      () => this.hear(),
      () => this.look(),
      () => this.fail(),
      () => this.end(),
      () => this.end(),
      () => this.clock.advance(this.below(10_000)),
    ]
    await this.oneOf(happenings)?.()
    await this.clock.advance(0)
  }

  /** Nothing new comes, and every delivery succeeds. @returns whether all rows are gone in the end */
  async runEmpty(): Promise<boolean> {
    for (let round = 0; round < 500; round += 1) {
      while (this.unheard.length > 0) {
        this.hear()
        await this.clock.advance(0)
      }
      while (this.underWay.length > 0) this.end('delivered')
      this.look()
      if (this.unheard.length > 0) continue
      const { idleMs } = this.schedule
      if (idleMs === undefined) break
      await this.clock.advance(idleMs)
    }
    return this.rows.size === 0
  }

  private accept(): void {
    const lane = laneKey(
      this.oneOf(DESTINATIONS) ?? '',
      this.oneOf(PRIORITY) ?? PRIORITIES.transactional,
      `w${this.below(2)}`,
    )
    const row = { lane, dueAt: this.soon(), isInHand: false }
    this.rows.add(row)
    this.tell(() => this.schedule.note(lane, row.dueAt))
  }

  /** The claim: what it finds is committed with it, and told later. */
  private look(): void {
    const now = this.clock.now()
    for (const turn of this.schedule.takeTurns(this.below(8) + 1, this.below(3) + 1)) {
      const free = [...this.rows].filter(row => row.lane === turn.lane.key && !row.isInHand)
      const claimed = free.filter(row => row.dueAt <= now).slice(0, turn.slots)
      for (const row of claimed) row.isInHand = true
      const dueTimes = free.filter(row => !claimed.includes(row)).map(({ dueAt }) => dueAt)
      const nextDueAt = dueTimes.length > 0 ? Math.min(...dueTimes) : undefined
      this.tell(() => {
        this.schedule.claimEnded(turn, claimed.length, nextDueAt)
        for (const row of claimed) this.underWay.push({ turn, row })
      })
    }
  }

  /** A claim that the database refuses. */
  private fail(): void {
    for (const turn of this.schedule.takeTurns(2, 1))
      this.tell(() => this.schedule.claimEnded(turn, 0, this.clock.now()))
  }

  private end(outcome = this.oneOf(['delivered', 'deferred', 'handed back'])): void {
    const ended = this.takeOne(this.underWay)
    if (!ended) return
    const { turn, row } = ended
    const dueAt = outcome === 'delivered' ? undefined : this.soon()
    const record = () => {
      if (dueAt === undefined) this.rows.delete(row)
      else Object.assign(row, { dueAt, isInHand: false })
    }
    if (outcome === 'handed back') {
      record()
      this.tell(() => this.schedule.released(turn, dueAt))
      return
    }
    this.schedule.deliveryEnded(turn, this.oneOf(SIGNALS) ?? { kind: 'none' }, 10)
    record()
    this.tell(() => this.schedule.settled(turn, dueAt))
  }

  private soon(): number {
    return this.clock.now() + (this.below(2) === 0 ? 0 : this.below(30_000))
  }

  private tell(what: () => void): void {
    this.unheard.push(what)
  }

  private hear(): void {
    this.takeOne(this.unheard)?.()
  }

  private takeOne<T>(from: T[]): T | undefined {
    return from.splice(this.below(from.length), 1)[0]
  }

  private oneOf<T>(list: readonly T[]): T | undefined {
    return list[this.below(list.length)]
  }

  private below(limit: number): number {
    return Math.floor(this.random.fraction() * limit)
  }
}

t.test('in any order of events no mail is forgotten and nothing leaks', async t => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const queue = new PlayedQueue(seed)
    for (let step = 0; step < 400; step += 1) await queue.happen()
    t.ok(await queue.runEmpty(), `order ${seed}: ${queue.rows.size} messages are left`)
    t.match(queue.schedule.size, { lanes: 0, dueTimes: 0 }, `order ${seed}`)
    t.equal(
      queue.schedule.listSites().reduce((sum, { active }) => sum + active, 0),
      0,
      `order ${seed}: every connection is given back`,
    )
  }
})
