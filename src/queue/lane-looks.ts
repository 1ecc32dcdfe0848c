/**
 * Looks for lanes with mail that others committed: other nodes, or the command line.
 *
 * A look takes a step per lane, and on PostgreSQL also meets the index entries of what was delivered while a snapshot is held open. So each kind of
 * look rests for a multiple of its duration. A look at everything that is quick, as it nearly always is, never rests longer than the interval
 * between two looks. While it rests, looks begin shortly before the last one: they read no rows of what was delivered, and miss only mail
 * that has become due earlier, such as held mail that was released.
 */
import type { Clock } from '../world/time/clock.js'
import type { LaneDue } from './queue-store.js'

/** Pause after a look, as a multiple of its duration. */
const REST = 20
/** How far clocks and commits of others may lag behind. */
const OVERLAP_MS = 60_000

export interface LaneLooksParts {
  readonly clock: Clock
  /** @param from due times before it need not be found, ms since epoch UTC; 0: all */
  readonly list: (from: number) => Promise<LaneDue[]>
}

export class LaneLooks {
  private readonly parts: LaneLooksParts
  /** When the last look at everything began, and later ones; ms since epoch UTC. */
  private lastAt = 0
  /** Monotonic, ms. */
  private readonly restUntil = { all: -Infinity, recent: -Infinity }

  constructor(parts: LaneLooksParts) {
    this.parts = parts
  }

  /** Whatever was done lately. */
  all(): Promise<LaneDue[]> {
    return this.look('all', 0)
  }

  /** @returns undefined if both kinds rest: ask again later */
  async next(): Promise<LaneDue[] | undefined> {
    const now = this.parts.clock.monotonic()
    if (now >= this.restUntil.all) return this.all()
    if (now < this.restUntil.recent) return undefined
    return this.look('recent', this.lastAt - OVERLAP_MS)
  }

  private async look(kind: 'all' | 'recent', from: number): Promise<LaneDue[]> {
    const { clock, list } = this.parts
    const [startedAt, started] = [clock.now(), clock.monotonic()]
    const lanes = await list(from)
    const ended = clock.monotonic()
    this.restUntil[kind] = ended + REST * (ended - started)
    this.lastAt = startedAt
    return lanes
  }
}
