/**
 * Looks for lanes with mail that others committed: other nodes, or the command line.
 *
 * A look at everything takes a step per lane. On PostgreSQL it also meets the index entries of what was delivered while a snapshot is held open:
 * seconds, for half an hour's mail. So each kind of look rests for a multiple of its duration. A look that is quick, as it nearly always is,
 * rests no longer than the interval between two looks. While the look at everything rests, mail that was enqueued lately is looked for; older mail
 * that others have made due, for example by releasing it, waits for the end of the rest.
 */
import type { Clock } from '../world/time/clock.js'
import type { LaneDue } from './queue-store.js'

/** Pause after a look, as a multiple of its duration. */
const REST = 50
/** How far the clocks and commits of others may lag behind. */
const OVERLAP_MS = 20_000

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

  constructor(parts: LaneLooksParts) {
    this.parts = parts
  }

  /** Does not wait for the end of a rest. */
  all(): Promise<LaneDue[]> {
    return this.look('all', () => this.parts.all())
  }

  /** @returns undefined if both kinds rest: ask again later */
  async next(): Promise<LaneDue[] | undefined> {
    const now = this.parts.clock.monotonic()
    if (now >= this.restUntil.all) return this.all()
    if (now < this.restUntil.ofNew) return undefined
    return this.look('ofNew', () => this.parts.ofNew(this.lastAt - OVERLAP_MS))
  }

  private async look(kind: 'all' | 'ofNew', list: () => Promise<LaneDue[]>): Promise<LaneDue[]> {
    const { clock } = this.parts
    const [startedAt, started] = [clock.now(), clock.monotonic()]
    const lanes = await list()
    const ended = clock.monotonic()
    this.restUntil[kind] = ended + REST * (ended - started)
    this.lastAt = startedAt
    return lanes
  }
}
