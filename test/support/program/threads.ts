/** Real threads under observation: messages each received, how it ended, and another program instead of its own. */
import { spawnThread, type SpawnThread, type ThreadEnd } from '../../../src/world/threads.js'
import type { Instruction } from '../../../src/mta/workers/worker-protocol.js'

export interface WatchedThread {
  /** What was posted to it, in order; one entry per message. */
  readonly posted: readonly (readonly Instruction[])[]
  readonly end: ThreadEnd | undefined
  /** Ends it wherever it is, as a fault would. */
  kill(): Promise<void>
}

export interface WatchedThreads {
  readonly spawn: SpawnThread
  /** In the order of their start. */
  readonly started: readonly WatchedThread[]
  /** What threads run that are started from now on, in place of what they should. */
  program: URL | undefined
}

export function watchThreads(): WatchedThreads {
  const started: WatchedThread[] = []
  const watched: WatchedThreads = {
    started,
    program: undefined,
    spawn(entry, options) {
      const posted: (readonly Instruction[])[] = []
      let end: ThreadEnd | undefined
      const thread = spawnThread(watched.program ?? entry, {
        ...options,
        onEnd(known) {
          end = known
          options.onEnd(known)
        },
      })
      started.push({
        posted,
        get end() {
          return end
        },
        kill: () => thread.terminate(),
      })
      return {
        post(message, handedOver) {
          posted.push(message as readonly Instruction[])
          thread.post(message, handedOver)
        },
        terminate: () => thread.terminate(),
      }
    },
  }
  return watched
}

/** All messages of this kind that it received. */
export function told<K extends Instruction['kind']>(
  { posted }: WatchedThread,
  kind: K,
): Extract<Instruction, { kind: K }>[] {
  return posted
    .flat()
    .filter((instruction): instruction is Extract<Instruction, { kind: K }> => instruction.kind === kind)
}
