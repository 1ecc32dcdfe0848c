/** A clock for tests. Time stands still until `advance` is called; then due timers fire in order. */
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

  get waiting(): number {
    return this.pending.size
  }

  /** Sets the wall clock, as an operator or a suspend would; timers and the monotonic clock are unaffected. @param ms may be negative */
  jump(ms: number): void {
    this.nowMs += ms
    this.startMs += ms
    for (const entry of this.pending) entry.at += ms
  }

  /** Advances both clocks without firing timers. */
  skip(ms: number): void {
    this.nowMs += ms
    for (const entry of this.pending) entry.at += ms
  }

  /** Advances both clocks and fires due timers; work started by a timer runs before the next one fires. */
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
