/**
 * Statements on PostgreSQL whose caller waits in place, so that tests read a database as they read a file of SQLite.
 *
 * A thread keeps the connection. Starting `psql` for each takes 20 ms on a quiet machine and a second on a busy one, and while it runs nobody
 * is answered by the servers that live in the test's process: a test that polls would hold up the delivery it waits for.
 */
import { resolve } from 'node:path'
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { Answer } from './postgres-thread.js'

/** Not beside this file, where tests are bundled. */
const THREAD = resolve('build/test/support/db/postgres-thread.js')
/** Longer than the server lets any statement of ours wait for a lock. */
const LIMIT_MS = 60_000

let thread: Worker | undefined

/** @returns the rows, each the values of its columns @throws Error with what the server said */
export function rowsInPlace(url: string, statement: string): readonly (readonly unknown[])[] {
  thread ??= startThread()
  const { port1, port2 } = new MessageChannel()
  const isAnswered = new Int32Array(new SharedArrayBuffer(4))
  thread.postMessage({ url, statement, port: port2, isAnswered }, [port2])
  Atomics.wait(isAnswered, 0, 0, LIMIT_MS)
  const { message: answer } = (receiveMessageOnPort(port1) ?? {}) as { message?: Answer }
  port1.close()
  if (!answer) throw new Error(`the database did not answer within ${LIMIT_MS} ms: ${statement}`)
  if ('error' in answer) throw new Error(`${answer.error}: ${statement}`)
  return answer.rows
}

function startThread(): Worker {
  const worker = new Worker(THREAD, { execArgv: [] })
  // A test that has ended is not kept alive by it.
  worker.unref()
  return worker
}
