/**
 * How long the server takes from the start of its process until it serves, with nothing and with much in the queue.
 *
 * Called by `main.ts`. The full queue is due only in the future: what is measured is finding out about it, not sending.
 */
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { fillQueue } from '../fill/fill-queue.js'
import { median, short } from '../numbers.js'
import { copyInstallation, serve, type Installation } from '../server/server-process.js'
import { printTable } from '../table.js'

export interface StartOptions {
  readonly messages: number
}

const DOMAINS = 1_000
const ROUNDS = 3
const DUE_IN_MS = 86_400_000

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
    'Start: from the spawn of the process to its log line "postroad serves"',
    [
      ['queue', 'median ms', 'all ms'],
      await measureRow('empty', empty),
      await measureRow(`${messages}`, full),
    ],
    [`Of ${ROUNDS} starts. The full queue is ${messages} messages to ${DOMAINS} domains, due tomorrow.`],
  )
}

async function measureRow(name: string, installation: Installation): Promise<string[]> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    const server = await serve(installation)
    times.push(server.startMs)
    await server.stop()
  }
  return [name, short(median(times)), times.map(short).join(' ')]
}
