/**
 * Time. The only user of Date.now and of timers; everything else is handed a Clock.
 *
 * `FakeClock` in `fake-clock.ts` is the one that tests turn by hand.
 */

export interface Timer {
  /** Stops the timer; harmless when it has fired or was cancelled. */
  cancel(): void
}

export interface Clock {
  /** Ms since epoch UTC. May jump when the operator sets the machine's clock. */
  now(): number
  /** Ms from an arbitrary start, never going back; for measuring how long something took. */
  monotonic(): number
  /** Calls back once, after at least `delayMs`. A pending timer does not keep the process alive. */
  after(delayMs: number, callback: () => void): Timer
  /**
   * Resolves after `delayMs`, or at once when the signal aborts (it never rejects). Whoever sleeps has something left to
   * do, so unlike a timer this does keep the process alive.
   */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>
}

/** setTimeout treats anything larger as 1 ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
    handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
  sleep(delayMs, signal) {
    return sleepOn(startTimer, delayMs, signal)
  },
}

/** The system's, set to a time that it goes on from. */
export function clockFrom(now: number): Clock {
  const ahead = now - Date.now()
  return { ...systemClock, now: () => Date.now() + ahead }
}

function startTimer(delayMs: number, callback: () => void): Timer {
  const handle = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
  return { cancel: () => clearTimeout(handle) }
}

/** `sleep` in terms of a timer, shared by the real and the fake clock. */
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

/** Lets waiting sockets and timers have their turn before a long run of synchronous database work goes on. */
export function nextTurn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Steps aside for some milliseconds of real time, whatever the clock: for gathering what arrives together. */
export function pauseFor(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
