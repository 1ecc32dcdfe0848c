/**
 * Looks for lanes with mail that others committed: other nodes, or the command line.
 *
 * A look at all lanes takes a step per lane. While a snapshot is held open on PostgreSQL, it also passes the index entries of all mail delivered
 * since: seconds, after half an hour. So each kind of look is followed by a pause of a multiple of its duration, or of the one before if
 * that was shorter. Usually a look is quick, and the pause is shorter than the interval between two looks. During a longer pause only newly enqueued mail is looked for; older mail that
 * others have made due, for example by releasing it, waits until the pause ends.
 */
import type { Clock } from '../world/time/clock.js'
import type { LaneDue } from './queue-store.js'

/** Pause after a look, as a multiple of its duration. */
const REST = 50
/** How far the clocks and commits of others may lag behind. */
const OVERLAP_MS = 20_000

export interface Look {
  readonly lanes: readonly LaneDue[]
  /** All lanes were looked at, not only those of new mail. */
  readonly isComplete: boolean
}

export interface LaneLooksParts {
  readonly clock: Clock
  readonly all: () => Promise<LaneDue[]>
  /** @param moment ms since epoch UTC */
  readonly ofNew: (moment: number) => Promise<LaneDue[]>
}

export class LaneLooks {
  private readonly parts: LaneLooksParts
  /** When the last look began, ms since epoch UTC. */
  private lastAt = 0
  /** Monotonic, ms. */
  private readonly restUntil = { all: -Infinity, ofNew: -Infinity }
  private readonly lastDurationMs = { all: 0, ofNew: 0 }

  constructor(parts: LaneLooksParts) {
    this.parts = parts
  }

  /** Even during a pause. */
  all(): Promise<LaneDue[]> {
    return this.look('all', () => this.parts.all())
  }

  /** Unless the look is complete, ask again later. @returns undefined during the pauses of both kinds */
  async next(): Promise<Look | undefined> {
    const now = this.parts.clock.monotonic()
    if (now >= this.restUntil.all) return { lanes: await this.all(), isComplete: true }
    if (now < this.restUntil.ofNew) return undefined
    const lanes = await this.look('ofNew', () => this.parts.ofNew(this.lastAt - OVERLAP_MS))
    return { lanes, isComplete: false }
  }

  private async look(kind: 'all' | 'ofNew', list: () => Promise<LaneDue[]>): Promise<LaneDue[]> {
    const { clock } = this.parts
    const [startedAt, started] = [clock.now(), clock.monotonic()]
    const lanes = await list()
    const ended = clock.monotonic()
    const durationMs = ended - started
    // One slow look may have met a pause of the database; two in a row are slow themselves.
    this.restUntil[kind] = ended + REST * Math.min(durationMs, this.lastDurationMs[kind])
    this.lastDurationMs[kind] = durationMs
    this.lastAt = startedAt
    return lanes
  }
}
