/** Waiting for something that happens elsewhere: in another process, on a socket. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FakeClock } from '../../src/world/time/fake-clock.js'

/** Far beyond what anything here takes; only a test that fails waits so long. */
const LIMIT_MS = 20_000
const LOOK_EVERY_MS = 10

/**
 * Polls until there is a result.
 *
 * @param seen what to say besides when it did not come
 * @throws Error naming what did not come
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  limitMs = LIMIT_MS,
  seen: () => string | Promise<string> = () => '',
): Promise<T> {
  const limit = performance.now() + limitMs
  for (;;) {
    const found = await look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > limit) throw new Error([`waited in vain for ${what}`, await seen()].join('\n'))
    await sleep(LOOK_EVERY_MS)
  }
}

/** A second of the clock lasts this long at most: time limits of requests and threads are of the same clock, and they take real time. */
const SECOND_MS = 250

/** Turns the clock on until there is a result, by a second whenever a while has brought none. @throws Error naming what did not come */
export async function untilLater<T>(
  clock: FakeClock,
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  let secondEndsAt = 0
  return until(what, async () => {
    if (performance.now() >= secondEndsAt) {
      await clock.advance(1_000)
      secondEndsAt = performance.now() + SECOND_MS
    }
    return look()
  })
}

const MINUTE_MS = 60_000

/**
 * A long time passes: all of it but the last minute at once, as for a machine that was suspended, since an hour of a server's timers takes
 * many seconds. What is due at the end is seen by timers of the last minute.
 */
export async function longAfter(clock: FakeClock, ms: number): Promise<void> {
  clock.skip(Math.max(0, ms - MINUTE_MS))
  await clock.advance(Math.min(ms, MINUTE_MS))
}
