/** A receiver of webhooks on the loopback: remembers what came, answers as set. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { until } from '../support/until.js'

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests match it against what they expect
  readonly json: any
}

interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Never answers. */
  readonly hangs?: true
}

export interface Receiver {
  readonly port: number
  readonly url: string
  readonly received: Received[]
  /** Connections so far. */
  readonly connections: () => number
  /** From now on, by path; the empty path is every other. */
  answers(answer: Answer, path?: string): void
  /** Resolves with all once there are so many. @param event of this event only */
  has(count: number, event?: string): Promise<Received[]>
}

export async function openReceiver(t: Test): Promise<Receiver> {
  const received: Received[] = []
  const answers = new Map<string, Answer>()
  let connections = 0
  const server: Server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (text: string) => (body += text))
    request.on('end', () => {
      const path = request.url ?? ''
      received.push({ path, headers: request.headers, body, json: JSON.parse(body) as unknown })
      const answer = answers.get(path) ?? answers.get('') ?? {}
      if (answer.hangs) return
      response.writeHead(answer.status ?? 200, answer.headers).end(answer.body ?? 'ok')
    })
  })
  server.on('connection', () => (connections += 1))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    received,
    connections: () => connections,
    answers: (answer, path = '') => void answers.set(path, answer),
    has: (count, event) =>
      until(`${count} deliveries ${event ?? ''}`, () => {
        const those = received.filter(({ json }) => event === undefined || json.event === event)
        return those.length >= count ? those : undefined
      }),
  }
}
