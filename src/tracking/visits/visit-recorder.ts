/**
 * Stores visits in batches. The response to a click waits for the commit of its batch, so no answered visit is lost.
 *
 * The reader is redirected whatever happens here: at once if the database cannot be written or too many visits are waiting, after
 * `MAX_WAIT_MS` if the commit takes long. Visits beyond the bounds are dropped. Never rejects.
 */
import { BatchWriter, type BatchWriterParts } from '../../db/batch-writer.js'
import { pauseFor } from '../../world/time/clock.js'
import { insertVisits, type Visit } from './visit-store.js'

export interface VisitBounds {
  /** Visits in memory, waiting for a commit; about 500 octets each. */
  readonly buffered: number
  /** Visits in the database, waiting to be counted. */
  readonly uncounted: number
}

const BOUNDS: VisitBounds = { buffered: 20_000, uncounted: 2_000_000 }
/** Visits per transaction. Large, so that a disk that takes 100 ms for a commit keeps up with thousands of visits per second. */
const BATCH_SIZE = 2_000
/** A commit costs as much as storing a hundred visits; a reader does not notice the wait. */
const GATHER_MS = 4
const MAX_WAIT_MS = 500
const STOP_MS = 1_000
/** At most one log line per minute. */
const LOG_INTERVAL_MS = 60_000

interface Recording {
  readonly visit: Visit
  readonly done: (isStored: boolean) => void
}

export class VisitRecorder {
  private readonly parts: BatchWriterParts
  private readonly bounds: VisitBounds
  private readonly batches: BatchWriter<Recording, void>
  private uncounted: number
  private isClosed = false
  private loggedAt = -LOG_INTERVAL_MS
  /** Called after visits were stored. */
  onStored: () => void = () => undefined

  /** @param uncounted visits in the database */
  constructor(parts: BatchWriterParts, uncounted: number, bounds = BOUNDS) {
    this.parts = parts
    this.bounds = bounds
    this.uncounted = uncounted
    this.batches = new BatchWriter(parts, {
      events: { writeFailed: 'visit write failed', abandoned: 'visit not recorded' },
      size: BATCH_SIZE,
      gatherMs: GATHER_MS,
      record: ({ db }, batch) =>
        insertVisits(
          db,
          batch.map(({ visit }) => visit),
        ),
      onRecorded: batch => {
        this.uncounted += batch.length
        for (const { done } of batch) done(true)
        this.onStored()
      },
      onAbandoned: ({ done }) => done(false),
      describe: ({ visit }) => ({ message: visit.messageId }),
    })
  }

  /** More than half of the allowed visits are uncounted. */
  get isFilling(): boolean {
    return this.uncounted > this.bounds.uncounted / 2
  }

  /** @returns whether the visit is on disk; it may still be stored later if not */
  record(visit: Visit): Promise<boolean> {
    const { batches, bounds } = this
    if (this.isClosed) return Promise.resolve(false)
    if (batches.pending >= bounds.buffered || this.uncounted >= bounds.uncounted) {
      this.logDropped()
      return Promise.resolve(false)
    }
    return new Promise(resolve => {
      const late = this.parts.clock.after(batches.isFailing ? 0 : MAX_WAIT_MS, () => resolve(false))
      const done = (isStored: boolean) => {
        late.cancel()
        resolve(isStored)
      }
      batches.add({ visit, done })
    })
  }

  /** @param visits stored but not counted yet */
  noteUncounted(visits: number): void {
    this.uncounted = visits
  }

  noteCounted(visits: number): void {
    this.uncounted -= visits
  }

  /** Stores what is waiting, unless the database cannot be written. */
  async close(): Promise<void> {
    this.isClosed = true
    await Promise.race([this.batches.idle(), pauseFor(STOP_MS)])
  }

  private logDropped(): void {
    const now = this.parts.clock.monotonic()
    if (now - this.loggedAt < LOG_INTERVAL_MS) return
    this.loggedAt = now
    this.parts.log.error('visit not recorded', {
      error: 'visits arrive faster than they are stored and counted',
    })
  }
}
