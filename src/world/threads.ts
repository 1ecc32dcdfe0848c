/**
 * Worker threads, for work that must not block the main thread.
 *
 * Messages are copied by structured clone, except transferred buffers. Never throws for a thread that has ended: messages to it are
 * dropped, and its end is reported once.
 */
import { availableParallelism, setPriority } from 'node:os'
import { Script } from 'node:vm'
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { embeddedProgram } from './embedded/embedded-files.js'

export interface ThreadEnd {
  /** 0 if it returned; 1 if it failed or was terminated. */
  readonly exitCode: number
  /** The uncaught exception, or out of memory. */
  readonly fault?: Error
}

/** The parent's handle of a thread. A thread keeps the process alive until it ends, unless it is a background thread. */
export interface Thread {
  /** @param transfer buffers in the message to transfer instead of copying */
  post(message: unknown, transfer?: readonly ArrayBuffer[]): void
  /** Stops it immediately; resolves once it has ended. */
  terminate(): Promise<void>
}

export interface ThreadOptions {
  /** Available in the thread as `ownThread().options`; must be cloneable. */
  readonly options: unknown
  /** Heap limit, MiB; the thread fails when it is exceeded. Buffers do not count. */
  readonly heapMegabytes: number
  /** Does not keep the process alive. */
  readonly isBackground?: boolean
  readonly onMessage: (message: unknown) => void
  /** Called once, after the last message. */
  readonly onEnd: (end: ThreadEnd) => void
}

/** @param entry a compiled file, or a program inside the executable */
export type SpawnThread = (entry: URL, options: ThreadOptions) => Thread

/** The thread's handle of itself. */
export interface OwnThread {
  readonly options: unknown
  /** @param transfer buffers in the message to transfer instead of copying */
  post(message: unknown, transfer?: readonly ArrayBuffer[]): void
  /** Messages queue until this is called; after it, listening keeps the thread alive. */
  listen(listener: (message: unknown) => void): void
  /** Called before an uncaught exception ends the thread; messages posted then still arrive. Not called on termination or out of memory. */
  beforeEnd(listener: () => void): void
}

/** Node's default is three times as much, without a measurable gain. */
const YOUNG_MEGABYTES = 16

/** See setpriority(2). */
const LOW_PRIORITY_NICENESS = 5

/**
 * Lowers the calling thread's priority below the main thread's. Linux only: elsewhere it would affect the whole process.
 */
export function stepAside(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(LOW_PRIORITY_NICENESS)
  } catch {
    // Not permitted; this is only an optimization.
  }
}

const WORK = Symbol.for('postroad.work')
const runWork = new Script("globalThis[Symbol.for('postroad.work')]()")

/**
 * Runs code of the calling thread, and ends it wherever it is once the limit has passed, in regular expressions too. Code ended that way
 * runs no `finally` and settles no promise, so whatever it was changing must not be used any more. Costs 0.1 ms.
 *
 * @returns false if it was ended
 */
export function runWithin(limitMs: number, work: () => void): boolean {
  Reflect.set(globalThis, WORK, work)
  try {
    runWork.runInThisContext({ timeout: limitMs })
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      return false
    throw error
  }
}

/** CPU time that the calling thread has used, ms: unlike time on a clock, it stands still while the machine does other things. */
export function ownCpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

export function availableThreads(): number {
  return availableParallelism()
}

export const spawnThread: SpawnThread = (entry, parts) => {
  const { options, heapMegabytes, isBackground, onMessage, onEnd } = parts
  let fault: Error | undefined
  let worker: Worker
  try {
    const inside = embeddedProgram(entry)
    worker = new Worker(inside ?? entry, {
      eval: inside !== undefined,
      workerData: options,
      // Threads do not need the main program's --import modules.
      ...(process.execArgv.some(flag => flag.startsWith('--import')) ? { execArgv: [] } : {}),
      resourceLimits: { maxOldGenerationSizeMb: heapMegabytes, maxYoungGenerationSizeMb: YOUNG_MEGABYTES },
    })
  } catch (error) {
    // No thread available: reported like any other end, once the caller has the handle.
    queueMicrotask(() => onEnd({ exitCode: 1, fault: asError(error) }))
    return { post: () => {}, terminate: () => Promise.resolve() }
  }
  worker.on('message', onMessage)
  worker.on('error', thrown => (fault = asError(thrown)))
  // After the listeners, because adding one for messages takes a reference.
  if (isBackground) worker.unref()
  worker.on('exit', exitCode => onEnd({ exitCode, ...(fault === undefined ? {} : { fault }) }))
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    async terminate() {
      await worker.terminate()
    },
  }
}

/** @throws Error in the main thread */
export function ownThread(): OwnThread {
  const port = parentPort
  if (port === null) throw new Error('this program must run in a worker thread')
  return {
    options: workerData as unknown,
    post: (message, transfer = []) => port.postMessage(message, transfer),
    listen: listener => void port.on('message', listener),
    beforeEnd: listener => void process.once('exit', listener),
  }
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}
