/**
 * Threads of this process: a JavaScript program of its own beside the main one, spoken to by messages.
 *
 * Called by whoever has work that must not hold up the main thread, and by the program that runs in the thread. Values
 * are copied on their way (the structured clone algorithm: no functions, no class instances), except buffers that are
 * handed over. Fails: never throws for a thread that has ended; what is posted to it is lost, and its end is told once.
 */
import { availableParallelism, setPriority } from 'node:os'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { embeddedProgram } from './embedded/embedded-files.js'

/** How a thread ended. */
export interface ThreadEnd {
  /** 0 where it came to its end by itself; 1 for a fault and for a thread that was told to end. */
  readonly exitCode: number
  /** What it threw and nobody caught, or that its memory was used up. */
  readonly fault?: Error
}

/** A thread as the one that started it sees it; it keeps the process alive until it has ended. */
export interface Thread {
  /** @param handedOver buffers in the message that change their owner instead of being copied */
  post(message: unknown, handedOver?: readonly ArrayBuffer[]): void
  /** Ends it wherever it is; resolves when it is gone. */
  terminate(): Promise<void>
}

export interface ThreadOptions {
  /** Read there with `ownThread().options`; must be clonable. */
  readonly options: unknown
  /** Most memory for its JavaScript objects, MiB; it ends with a fault when that is used up. Buffers do not count. */
  readonly heapMegabytes: number
  /** Of what it has just made, beside its heap; 16 where absent. More where much lives for a while and is then garbage together. */
  readonly youngMegabytes?: number
  readonly onMessage: (message: unknown) => void
  /** Called once, after the last message. */
  readonly onEnd: (end: ThreadEnd) => void
}

/** @param entry a compiled file, or a program that is in the executable */
export type SpawnThread = (entry: URL, options: ThreadOptions) => Thread

/** A thread as its own program sees it. */
export interface OwnThread {
  /** What the starter handed over. */
  readonly options: unknown
  /** @param handedOver buffers in the message that change their owner instead of being copied */
  post(message: unknown, handedOver?: readonly ArrayBuffer[]): void
  /** Until this is called messages wait; from then on they keep the thread alive. */
  listen(listener: (message: unknown) => void): void
  /** Called when a fault ends the thread; what is posted then still arrives. Not when it is terminated or out of memory. */
  beforeEnd(listener: () => void): void
}

/** What a thread has just made, beside its heap: three times as much by itself, which none of them is quicker by. */
const YOUNG_MEGABYTES = 16

/** Of threads that step aside; niceness, see setpriority(2). */
const ASIDE = 5

/**
 * Lets the calling thread go after others where there are more of them than cores: the main thread, which everybody waits
 * for, before those that work for it. Linux keeps this by thread; elsewhere it would be the whole process, and nothing is
 * done.
 */
export function stepAside(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(ASIDE)
  } catch {
    // Not allowed here: it only would have been better.
  }
}

/** Threads that can really run at the same time on this machine, as far as this process may use it. */
export function availableThreads(): number {
  return availableParallelism()
}

export const spawnThread: SpawnThread = (entry, parts) => {
  const { options, heapMegabytes, youngMegabytes = YOUNG_MEGABYTES, onMessage, onEnd } = parts
  let fault: Error | undefined
  let worker: Worker
  try {
    const inside = embeddedProgram(entry)
    worker = new Worker(inside ?? entry, {
      eval: inside !== undefined,
      workerData: options,
      // What is preloaded is for the program that was started: each thread would load it again, and wait for it.
      ...(process.execArgv.some(flag => flag.startsWith('--import')) ? { execArgv: [] } : {}),
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes, maxYoungGenerationSizeMb: youngMegabytes },
    })
  } catch (error) {
    // The machine has no thread to give; the starter learns of it as of any other end, when it knows the thread.
    queueMicrotask(() => onEnd({ exitCode: 1, fault: asError(error) }))
    return { post: () => {}, terminate: () => Promise.resolve() }
  }
  worker.on('message', onMessage)
  worker.on('error', thrown => (fault = asError(thrown)))
  worker.on('exit', exitCode => onEnd({ exitCode, ...(fault === undefined ? {} : { fault }) }))
  return {
    post: (message, handedOver = []) => worker.postMessage(message, handedOver),
    async terminate() {
      await worker.terminate()
    },
  }
}

/** @throws Error in the main thread */
export function ownThread(): OwnThread {
  const port = parentPort
  if (port === null) throw new Error('this program runs only in a thread')
  return {
    options: workerData as unknown,
    post: (message, handedOver = []) => port.postMessage(message, handedOver),
    listen: listener => void port.on('message', listener),
    beforeEnd: listener => void process.once('exit', listener),
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
