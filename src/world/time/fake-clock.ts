/**
 * A clock that tests turn by hand. Nothing happens until `advance` is called; then every timer due fires in order.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sleepOn, type Clock, type Timer } from './clock.js'

interface Pending {
  at: number
  readonly order: number
  readonly callback: () => void
}

export class FakeClock implements Clock {
  private nowMs: number
  private startMs: number
  private order = 0
  private readonly pending = new Set<Pending>()

  /** @param start first moment, ms since epoch UTC or ISO 8601 text */
  constructor(start: number | string = '2026-01-05T10:00:00.000Z') {
    this.startMs = this.nowMs = new Date(start).getTime()
  }

  now(): number {
    return this.nowMs
  }

  monotonic(): number {
    return this.nowMs - this.startMs
  }

  after(delayMs: number, callback: () => void): Timer {
    const entry: Pending = { at: this.nowMs + Math.max(0, delayMs), order: this.order++, callback }
    this.pending.add(entry)
    return { cancel: () => this.pending.delete(entry) }
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn((ms, callback) => this.after(ms, callback), delayMs, signal)
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.pending.size
  }

  /**
   * The machine slept, or its clock was set: it is another time at once, of which neither timers nor the monotonic clock know
   * anything. @param ms negative: back
   */
  jump(ms: number): void {
    this.nowMs += ms
    this.startMs += ms
    for (const entry of this.pending) entry.at += ms
  }

  /** Time passes on both clocks without anything falling due: for days in which nothing of interest happens. */
  skip(ms: number): void {
    this.nowMs += ms
    for (const entry of this.pending) entry.at += ms
  }

  /** Moves time on, firing what falls due on the way; work that a timer starts gets its turn before the next one fires. */
  async advance(ms: number): Promise<void> {
    const end = this.nowMs + ms
    await nextTurn()
    for (;;) {
      const next = [...this.pending]
        .filter(p => p.at <= end)
        .sort((a, b) => a.at - b.at || a.order - b.order)[0]
      if (!next) break
      this.pending.delete(next)
      this.nowMs = next.at
      next.callback()
      await nextTurn()
    }
    this.nowMs = end
    await nextTurn()
  }
}
