/**
 * A single mail that somebody waits for, while a campaign of many messages is being sent: how long until it has left, and
 * what the campaign costs in memory.
 *
 * Called by `main.ts`. Everything goes to one site, so that the single mails have to be let past. Fails: throws where one was
 * not delivered within the time limit.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { PRIORITIES } from '../../src/messages/mail-origin.js'
import { peakText } from './accept.js'
import { fillQueue } from '../fill/fill-queue.js'
import { median, short } from '../numbers.js'
import { copyInstallation, SENDER, serve, type Installation } from '../server/server-process.js'
import { openSink } from '../peers/sinks.js'
import { printTable } from '../table.js'

const DOMAINS = 1_000
const SINGLE_MAILS = 20
const RUN_IN_MS = 3_000
const BETWEEN_MS = 100
const POLL_MS = 5
const LIMIT_MS = 10_000

/** @param sizes lengths of the queue, one row each */
export async function measureBacklog(original: Installation, sizes: readonly number[]): Promise<void> {
  const sink = await openSink()
  const rows: string[][] = []
  for (const messages of sizes) {
    const installation = await copyInstallation(original, `backlog-${messages}`)
    await fillQueue(installation, { messages, domains: DOMAINS, dueInMs: 0, priority: PRIORITIES.campaign })
    const outgoing = { port: sink.port, connections: 500, connectionsPerDestination: 40 }
    const server = await serve(installation, outgoing)
    await sleep(RUN_IN_MS)
    const times: number[] = []
    for (let number = 0; number < SINGLE_MAILS; number += 1) {
      times.push(await timeOfOne(server.port, installation.key, number))
      await sleep(BETWEEN_MS)
    }
    rows.push([
      `${messages}`,
      short(server.startMs),
      short(median(times)),
      short(Math.max(...times)),
      peakText(server),
    ])
    await server.stop()
  }
  await sink.stop()
  printTable(
    'A single mail while a campaign is being sent to the same site: from the request to its delivery',
    [['campaign', 'start ms', 'median ms', 'most ms', 'peak memory'], ...rows],
    [
      `${SINGLE_MAILS} single mails, one after the other; the campaign goes to ${DOMAINS} domains of one site.`,
    ],
  )
}

async function timeOfOne(port: number, key: string, number: number): Promise<number> {
  const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
  const root = `http://127.0.0.1:${port}/api/v1/email`
  const startedAt = performance.now()
  const body = {
    to: `reset${number}@login.example`,
    from_email: SENDER,
    subject: 'Your password',
    text: 'Here.',
  }
  const sent = await fetch(`${root}/send`, { method: 'POST', headers, body: JSON.stringify(body) })
  const { data } = (await sent.json()) as { data: { results: { message_id: string }[] } }
  const id = data.results[0]?.message_id ?? ''
  while (performance.now() - startedAt < LIMIT_MS) {
    const asked = await fetch(`${root}/${id}/status`, { headers })
    const { data: message } = (await asked.json()) as { data: { status: string } }
    if (message.status === 'delivered') return performance.now() - startedAt
    await sleep(POLL_MS)
  }
  throw new Error('a single mail was not delivered in time')
}
