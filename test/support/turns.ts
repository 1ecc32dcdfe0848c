/**
 * Waiting for what happens by itself: work that needs turns of the event loop, its timers and files, but no socket, no thread
 * and no turn of a fake clock.
 *
 * Fails the test, naming what never came or never ended.
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

/** Longer than anything waits here in real time: a group commit gathers for 8 ms, a consumer rests for 20 ms. */
const LONGEST_MS = 5_000
/** What every test process has open, and nothing comes of by itself: its standard input and output. */
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
    const atWork = process.getActiveResourcesInfo().filter(kind => !STANDARD.has(kind))
    if (atWork.length === 0) return
    if (performance.now() > limit) throw new Error(`it did not come to rest: ${atWork.join(', ')}`)
  }
}
