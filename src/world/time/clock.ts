/** Time: the only user of Date.now and timers. Everything else is given a Clock; tests use `FakeClock`. */
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'

export interface Timer {
  /** Idempotent; does nothing after the timer has fired. */
  cancel(): void
}

export interface Clock {
  /** Ms since epoch UTC. Jumps when the system clock is set, or corrected. */
  now(): number
  /** Moves `now` by so many ms, in all threads; for a clock that is known to be wrong. */
  correct?(byMs: number): void
  /** Ms from an arbitrary start, never decreasing; for measuring durations. */
  monotonic(): number
  /** Calls back once, after at least `delayMs`. A pending timer does not keep the process alive. */
  after(delayMs: number, callback: () => void): Timer
  /** Resolves after `delayMs`, or when the signal aborts; never rejects. Unlike a timer, it keeps the process alive. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}

/** setTimeout treats larger values as 1 ms. */
const MAX_TIMER_MS = 2 ** 31 - 1

const CORRECTION = 'clock correction'

/** Ms by which `now` differs from the machine's clock: one value of the process, which its threads are given when they start. */
const correction = new Float64Array(sharedCorrection())

function sharedCorrection(): SharedArrayBuffer {
  const known = getEnvironmentData(CORRECTION)
  if (known instanceof SharedArrayBuffer) return known
  const shared = new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT)
  setEnvironmentData(CORRECTION, shared)
  return shared
}

const timers: Omit<Clock, 'now'> = {
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), MAX_TIMER_MS))
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
  sleep(delayMs, signal) {
    return sleepOn(startTimer, delayMs, signal)
  },
}

export const systemClock: Clock = {
  ...timers,
  now: () => Date.now() + (correction[0] ?? 0),
  correct(byMs) {
    correction[0] = (correction[0] ?? 0) + byMs
  },
}

/** A system clock that starts at the given time. */
export function clockFrom(now: number): Clock {
  const offset = now - Date.now()
  return { ...timers, now: () => Date.now() + offset }
}

function startTimer(delayMs: number, callback: () => void): Timer {
  const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), MAX_TIMER_MS))
  return { cancel: () => clearTimeout(handle) }
}

export function sleepOn(start: Clock['after'], delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) {
      resolve()
      return
    }
    const wake = () => {
      timer.cancel()
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = start(delayMs, wake)
    signal?.addEventListener('abort', wake, { once: true })
  })
}

/** Yields to the event loop, so that sockets and timers are served between synchronous database work. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Waits in real time, whatever the clock; for batching work that arrives together. */
export function pauseFor(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
