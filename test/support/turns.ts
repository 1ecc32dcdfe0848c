/**
 * Waiting for what happens by itself: work that needs turns of the event loop, its timers and files, but no socket, no thread
 * and no turn of a fake clock.
 *
 * Fails the test, naming what never came or never ended. Both are bounded by real time: turns of the loop take no time
 * where there is nothing to do, while a group commit that gathers and a file that is synced take what they take.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Far beyond what anything waits here in real time: a group commit gathers for 8 ms, a consumer rests for 20 ms. */
const LONGEST_MS = 10_000

/** Resolves as soon as the condition holds. @throws Error naming what did not happen */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const limit = performance.now() + LONGEST_MS
  while (!(await condition())) {
    if (performance.now() > limit) throw new Error(`it never happened that ${what}`)
    await nextTurn()
  }
}

/** What every test process has open and never finishes: its standard input and output. */
const STANDARD: ReadonlySet<string> = new Set(['PipeWrap', 'TTYWrap'])

/**
 * For saying that something did not happen: resolves once nothing can happen any more in this process, however long one waits.
 *
 * That is so when the event loop has nothing left: between two of its turns all promises have run as far as they can, and
 * what goes on later is then on the loop's list, as a turn, a timer or a file that is asked for. A timer of a fake clock
 * is on no list: it fires when the test turns the clock.
 * @throws Error naming what was still at work; also where a socket, a thread or a PostgreSQL is open, of which
 * nobody can know
 */
export async function comeToRest(): Promise<void> {
  const limit = performance.now() + LONGEST_MS
  for (;;) {
    await nextTurn()
    const atWork = workUnderWay()
    if (atWork.length === 0) return
    if (performance.now() > limit) throw new Error(`it did not come to rest: ${atWork.join(', ')}`)
  }
}

/** Kinds of what the event loop has on its list: timers, files, sockets, turns. One for each. */
export function workUnderWay(): string[] {
  return process.getActiveResourcesInfo().filter(kind => !STANDARD.has(kind))
}
