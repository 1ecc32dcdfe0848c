/**
 * Waiting for what happens by itself: work that needs turns of the event loop but no clock.
 *
 * Fails the test, naming what never came, after more turns than any such work takes.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'

const MOST_TURNS = 20_000

/** Resolves as soon as the condition holds. @throws Error naming what did not happen */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < MOST_TURNS; turn += 1) {
    if (await condition()) return
    await nextTurn()
  }
  throw new Error(`it never happened that ${what}`)
}

/** Lets everything that was begun come to rest; for saying that something did not happen. */
export async function settleDown(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await nextTurn()
}
