/**
 * Counts visits: moves them from `visits` into message history and the event log, each exactly once.
 *
 * Visits by people go through the message state machine; those by machines are only logged as events. The rows are deleted in the same
 * transaction. Counting lags a second behind to see whole bursts, and pauses after each batch in proportion to its duration, so under
 * load responses come before counting as long as there is room for uncounted visits.
 * Never rejects; database errors are logged and retried.
 */
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import type { Event } from '../../events/event.js'
import { appendEvents } from '../../events/store.js'
import { findOrigins } from '../../messages/content-store.js'
import { eventOf, recordTransitions, type Transition } from '../../messages/message-history.js'
import { findHeads } from '../../messages/message-status-store.js'
import { pauseFor } from '../../world/time/clock.js'
import { AT_ONCE, WHEN_WOKEN, Worker } from '../../world/time/worker.js'
import { countLinks, BURST_MS, ClickBursts, isBurst, isKnownMachine, isNearlyAll } from './bot-detection.js'
import type { VisitRecorder } from './visit-recorder.js'
import {
  deleteVisits,
  findDeliveryMoments,
  findHtmlSource,
  listVisits,
  type StoredVisit,
  type Visit,
} from './visit-store.js'

export interface CounterParts extends Pick<Services, 'database' | 'clock' | 'log' | 'onEvents'> {
  readonly recorder: Pick<VisitRecorder, 'isFilling' | 'noteCounted'>
}

/** Small, because the API and the queue wait for the transaction. */
const BATCH_SIZE = 50
const READ_SIZE = 500
const MAX_READ_AHEAD = 10_000
const MIN_PAUSE_MS = 10
/** Pause per ms that the batch took; batches take longer under load. */
const PAUSE_FACTOR = 8
const MAX_PAUSE_MS = 200

export class VisitCounter {
  private readonly parts: CounterParts
  private readonly worker: Worker
  private bursts = new ClickBursts()
  /** Read and not yet counted. */
  private readonly ahead: StoredVisit[] = []
  /** The next visit is known, and waits for the end of its burst. */
  private isWaiting = false

  constructor(parts: CounterParts) {
    this.parts = parts
    this.worker = new Worker({
      ...parts,
      failure: 'visit counting failed',
      runPiece: () => this.runBatch(),
      version: () => parts.database.changes.version('visits'),
    })
  }

  /** Call after visits were stored. Cheap. */
  wake(): void {
    if (!this.isWaiting) this.worker.wake()
    this.worker.start()
  }

  /** Call it after a stop, during which another node may have counted. */
  reopen(): void {
    this.ahead.length = 0
    this.bursts = new ClickBursts()
    this.worker.reopen()
  }

  /** Visits not yet counted are counted after the next start. */
  stop(): Promise<void> {
    return this.worker.stop()
  }

  private async runBatch(): Promise<number> {
    const { clock, recorder } = this.parts
    const begunAt = clock.monotonic()
    this.isWaiting = false
    await this.readAhead()
    const [first] = this.ahead
    if (!first) return WHEN_WOKEN
    const isReady = ({ at }: Visit) => clock.now() - at >= BURST_MS || at > clock.now()
    const end = this.ahead.slice(0, BATCH_SIZE).findIndex(visit => !isReady(visit))
    const ready = this.ahead.slice(0, end < 0 ? BATCH_SIZE : end)
    if (ready.length === 0) {
      this.isWaiting = true
      return first.at + BURST_MS
    }
    await this.count(ready)
    this.ahead.splice(0, ready.length)
    recorder.noteCounted(ready.length)
    this.worker.resetBackoff()
    const took = clock.monotonic() - begunAt
    const isUrgent = recorder.isFilling || this.worker.isStopped
    await pauseFor(
      isUrgent ? MIN_PAUSE_MS : Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * took)),
    )
    return AT_ONCE
  }

  /** Reads the next visits, at least up to the end of the first one's burst. */
  private async readAhead(): Promise<void> {
    const { ahead, bursts, parts } = this
    for (let isLast = false; !isLast && ahead.length <= MAX_READ_AHEAD;) {
      const read = await listVisits(parts.database.reader, ahead.at(-1)?.seq ?? 0, READ_SIZE)
      for (const visit of read) {
        bursts.add(visit, ahead[0]?.at ?? visit.at)
        ahead.push(visit)
      }
      const [first, last] = [ahead[0], read.at(-1)]
      isLast = read.length < READ_SIZE || !first || !last || last.at - first.at > BURST_MS
    }
  }

  private async count(visits: readonly StoredVisit[]): Promise<void> {
    const { database, onEvents } = this.parts
    const machines = await this.findMachines(visits)
    const judged = visits.map(visit => transitionOf(visit, machines.has(visit)))
    await database.write(
      async tx => {
        tx.onCommit(onEvents)
        // Those that are gone were counted by an earlier commit, whose answer was lost.
        const left = await deleteVisits(
          tx.db,
          visits.map(({ seq }) => seq),
        )
        const uncounted = judged.filter((_, index) => left.has(visits[index]?.seq ?? 0))
        await recordTransitions(
          tx,
          uncounted.filter(({ facts }) => !facts.isBot),
        )
        await logEvents(
          tx,
          uncounted.filter(({ facts }) => facts.isBot),
        )
      },
      { isLong: true },
    )
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
      linkCounts.set(id, countLinks((await findHtmlSource(slowReader, id)) ?? ''))
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

/** Visits by machines do not change the message's status. */
async function logEvents(tx: Tx, transitions: readonly VisitTransition[]): Promise<void> {
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
