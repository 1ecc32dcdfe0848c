/**
 * Counts visits: brings what stands in the journal into the history of messages and the event log, each once.
 *
 * What people did goes through the state machine; what machines did is told to the log alone. How far it has come is written in the
 * transaction that counts. It is a second behind, to see what comes with a visit, and rests after each piece for longer than that took:
 * while thousands come each second they are answered first and counted later, as long as the journal has room. Fails: never; trouble with the database is logged and tried again after a pause.
 */
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { describeError } from '../../core/errors.js'
import type { Database, Tx } from '../../db/database.js'
import type { Event } from '../../events/event.js'
import { appendEvents } from '../../events/store.js'
import { findOrigins } from '../../messages/content-store.js'
import { eventOf, recordTransitions, type Transition } from '../../messages/message-history.js'
import { findHeads } from '../../messages/message-status-store.js'
import type { Log } from '../../world/log.js'
import type { Random } from '../../world/random.js'
import { pauseFor, type Clock, type Timer } from '../../world/time/clock.js'
import { RetryingLoop } from '../../world/time/retrying-loop.js'
import { countLinks } from './count-links.js'
import { BURST_MS, ClickBursts, isBurst, isKnownMachine, isNearlyAll } from './judge-visits.js'
import type { JournalPlace, VisitJournal } from './visit-journal.js'
import type { ReadVisit, VisitReader } from './visit-reader.js'
import { findDeliveryMoments, findWrittenHtml, moveCountedPlace } from './visit-store.js'
import type { Visit } from './visit.js'

export interface CounterParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly journal: VisitJournal
  readonly reader: VisitReader
  /** The event log has grown. */
  readonly onEvents: () => void
}

/** One transaction's share; the API and the queue wait for it. */
const VISITS_PER_TURN = 50
/** Read ahead of what is counted. */
const MOST_AHEAD = 10_000
/** After each piece at least. */
const LEAST_REST_MS = 10
/** And in proportion to the time that the piece took, which is longer the more others have to do. */
const REST_PER_MS = 8
const MOST_REST_MS = 200
const RETRY: BackoffPolicy = { firstMs: 1_000, factor: 2, maxMs: 60_000 }

export class VisitCounter {
  private readonly parts: CounterParts
  private readonly loop: RetryingLoop
  private readonly bursts = new ClickBursts()
  private readonly ahead: ReadVisit[] = []
  private counted: JournalPlace
  private later: Timer | undefined
  private restMs = LEAST_REST_MS

  /** @param counted up to where visits were counted */
  constructor(parts: CounterParts, counted: JournalPlace) {
    this.parts = parts
    this.counted = counted
    const { clock, random, log } = parts
    this.loop = new RetryingLoop({
      clock,
      restMs: failures => retryDelayMs(RETRY, failures, random.fraction()),
      takeTurn: () => this.takeTurn(),
      afterTurn: () => pauseFor(this.restMs),
      onFailure: (error, retryInMs) => {
        log.error('visit counting failed', { error: describeError(error), retryInMs })
      },
    })
  }

  /** There are visits in the journal. Cheap. */
  wake(): void {
    if (this.later === undefined) this.loop.wake()
  }

  /** What is not counted yet is counted after the next start. */
  async stop(): Promise<void> {
    this.loop.halt()
    this.later?.cancel()
    await this.loop.stop()
  }

  private async takeTurn(): Promise<boolean> {
    const { clock, journal } = this.parts
    const begunAt = clock.monotonic()
    this.restMs = LEAST_REST_MS
    await this.readAhead()
    const [first] = this.ahead
    if (!first) return false
    const isRipe = ({ at }: Visit) => clock.now() - at >= BURST_MS || at > clock.now()
    const end = this.ahead.slice(0, VISITS_PER_TURN).findIndex(({ visit }) => !isRipe(visit))
    const ripe = this.ahead.slice(0, end < 0 ? VISITS_PER_TURN : end)
    const last = ripe.at(-1)
    if (!last) {
      this.wakeIn(first.visit.at + BURST_MS - clock.now())
      return false
    }
    await this.count(
      ripe.map(({ visit }) => visit),
      last.end,
    )
    this.ahead.splice(0, ripe.length)
    this.loop.succeed()
    const took = clock.monotonic() - begunAt
    if (!journal.isFilling) this.restMs = Math.min(MOST_REST_MS, Math.max(LEAST_REST_MS, REST_PER_MS * took))
    return true
  }

  private async readAhead(): Promise<void> {
    if (this.ahead.length > MOST_AHEAD) return
    for (const read of await this.parts.reader.read()) {
      this.bursts.note(read.visit, this.ahead[0]?.visit.at ?? read.visit.at)
      this.ahead.push(read)
    }
  }

  private wakeIn(ms: number): void {
    this.later ??= this.parts.clock.after(ms, () => {
      this.later = undefined
      this.loop.wake()
    })
  }

  private async count(visits: readonly Visit[], end: JournalPlace): Promise<void> {
    const { database, onEvents, reader } = this.parts
    const machines = await this.findMachines(visits)
    const judged = visits.map(visit => transitionOf(visit, machines.has(visit)))
    await database.write(
      async tx => {
        tx.onCommit(onEvents)
        await recordTransitions(
          tx,
          judged.filter(({ facts }) => !facts.isBot),
        )
        await tellLog(
          tx,
          judged.filter(({ facts }) => facts.isBot),
        )
        await moveCountedPlace(tx.db, end)
      },
      { isLong: true },
    )
    if (end.file !== this.counted.file) await reader.deleteBefore(end)
    this.counted = end
  }

  private async findMachines(visits: readonly Visit[]): Promise<ReadonlySet<Visit>> {
    const { reader, slowReader } = this.parts.database
    const machines = new Set(visits.filter(isKnownMachine))
    const clicks = visits.filter(visit => visit.kind === 'click' && !machines.has(visit))
    const moments = await findDeliveryMoments(reader, idsOf(clicks))
    const undecided: { readonly click: Visit; readonly links: number }[] = []
    for (const click of clicks) {
      const deliveredAt = moments.get(click.messageId) ?? null
      if (deliveredAt === null) continue
      const links = this.bursts.linksAround(click)
      const verdict = isBurst(links, click.at - deliveredAt)
      if (verdict === true) machines.add(click)
      if (verdict === undefined) undecided.push({ click, links })
    }
    const linkCounts = new Map<string, number>()
    for (const id of idsOf(undecided.map(({ click }) => click)))
      linkCounts.set(id, countLinks((await findWrittenHtml(slowReader, id)) ?? ''))
    for (const { click, links } of undecided)
      if (isNearlyAll(links, linkCounts.get(click.messageId) ?? 0)) machines.add(click)
    return machines
  }
}

function idsOf(visits: readonly Visit[]): string[] {
  return [...new Set(visits.map(({ messageId }) => messageId))]
}

type VisitTransition = Extract<Transition, { kind: 'opened' | 'clicked' }>

function transitionOf(
  { kind, messageId, at, address, userAgent, url = '' }: Visit,
  isBot: boolean,
): VisitTransition {
  const facts = { ip: address, userAgent, isBot }
  return kind === 'open'
    ? { kind: 'opened', messageId, at, facts }
    : { kind: 'clicked', messageId, at, facts: { ...facts, url } }
}

/** They change nothing, so the state machine is not asked. */
async function tellLog(tx: Tx, transitions: readonly VisitTransition[]): Promise<void> {
  if (transitions.length === 0) return
  const ids = [...new Set(transitions.map(({ messageId }) => messageId))]
  const heads = new Map((await findHeads(tx.db, ids)).map(head => [head.id, head]))
  const origins = await findOrigins(tx.db, [...new Set([...heads.values()].map(head => head.contentId))])
  const events = transitions.flatMap((transition): Event[] => {
    const head = heads.get(transition.messageId)
    return head ? [eventOf(transition, head, origins.get(head.contentId))] : []
  })
  await appendEvents(tx, events)
}
