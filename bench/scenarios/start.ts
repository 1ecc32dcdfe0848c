/**
 * How long the server takes from the start of its process until it serves, with nothing and with much in the queue.
 *
 * Called by `main.ts`. The full queue is due only in the future: what is measured is finding out about it, not sending.
 */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { fillQueue } from '../fill/fill-queue.js'
import { median, short } from '../numbers.js'
import { copyInstallation, serve, type Installation } from '../server/server-process.js'
import { printTable } from '../table.js'
import { setTimeout as sleep } from 'node:timers/promises'

export interface StartOptions {
  readonly messages: number
}

const DOMAINS = 1_000
const ROUNDS = 3
const DUE_IN_MS = 86_400_000
/** Measured as well where `make binary` has made it. */
const EXECUTABLE = resolve('dist/postroad')
/** After which a server that nobody asks anything counts as idle. */
const IDLE_MS = 30_000
const LIMIT_MS = 700
const LIMIT_BYTES = 120e6

export async function measureStart(original: Installation, { messages }: StartOptions): Promise<void> {
  const empty = await copyInstallation(original, 'start-empty')
  const full = await copyInstallation(original, 'start-full')
  await fillQueue(full, {
    messages,
    domains: DOMAINS,
    dueInMs: DUE_IN_MS,
    priority: PRIORITIES.transactional,
  })
  printTable(
    'Start: from the spawn of the process to its log line "server started"',
    [
      ['queue', 'median ms', 'all ms', 'idle MB'],
      await measureRow('empty', empty),
      await measureRow(`${messages}`, full),
      ...(existsSync(EXECUTABLE)
        ? [
            await measureRow('empty, one executable', empty, EXECUTABLE),
            await measureRow(`${messages}, one executable`, full, EXECUTABLE),
          ]
        : []),
    ],
    [
      `Of ${ROUNDS} starts. The full queue is ${messages} messages to ${DOMAINS} domains, due tomorrow. Idle: what is resident after ${IDLE_MS / 1_000} s.`,
      `The executable (make binary) with an empty queue has to serve within ${LIMIT_MS} ms and hold less than ${LIMIT_BYTES / 1e6} MB.`,
    ],
  )
}

async function measureRow(name: string, installation: Installation, executable?: string): Promise<string[]> {
  const times: number[] = []
  let idle = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await serve(installation, undefined, undefined, executable)
    times.push(server.startMs)
    if (round === ROUNDS - 1) {
      await sleep(IDLE_MS)
      idle = server.memory()
    }
    await server.stop()
  }
  return [name, short(median(times)), times.map(short).join(' '), short(idle / 1e6)]
}
