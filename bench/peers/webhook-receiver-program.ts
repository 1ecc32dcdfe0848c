/**
 * A program of its own: receivers of webhooks on the loopback, good, hanging and failing ones, told apart by their path.
 *
 * Started by `scenarios/webhooks.ts`, talks to it over IPC: `{port}` at first, and an account of what came for each `report`. How long an
 * event was on its way is told by its own timestamp, which the server's clock made: both run on one machine.
 */
import { createServer } from 'node:http'

/** Deliveries to one webhook of `good`. */
export interface ReceiverReport {
  /** Ms from event to receipt, of each first receipt since the last report. */
  readonly latencies: readonly number[]
  /** Receipts of what had come before, since the start. */
  readonly repetitions: number
  /** Different addresses that came, by path, since the start. */
  readonly counts: Readonly<Record<string, number>>
  /** Requests to each kind of receiver, since the start. */
  readonly requests: Readonly<Record<string, number>>
}

const seen = new Map<string, Set<string>>()
const requests: Record<string, number> = { good: 0, hang: 0, fail: 0 }
let latencies: number[] = []
let repetitions = 0

const server = createServer((request, response) => {
  const path = request.url ?? ''
  const kind = path.split('/')[1] ?? ''
  requests[kind] = (requests[kind] ?? 0) + 1
  let body = ''
  request.setEncoding('utf8').on('data', (text: string) => (body += text))
  request.on('end', () => {
    if (kind === 'hang') return
    if (kind === 'good') take(path, body)
    response.writeHead(kind === 'good' ? 200 : 500, { 'Content-Length': 2 }).end('ok')
  })
})

function take(path: string, body: string): void {
  const { timestamp, data } = JSON.parse(body) as { timestamp: string; data: { email: string } }
  const known = seen.get(path) ?? new Set<string>()
  seen.set(path, known)
  if (known.has(data.email)) {
    repetitions += 1
    return
  }
  known.add(data.email)
  latencies.push(Date.now() - Date.parse(timestamp))
}

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? (address?.port ?? 0) : 0 })
})

process.on('message', message => {
  if (message !== 'report') return
  const counts = Object.fromEntries([...seen].map(([path, known]) => [path, known.size]))
  const report: ReceiverReport = { latencies, repetitions, counts, requests }
  process.send?.(report)
  latencies = []
})
process.on('disconnect', () => process.exit(0))
