/**
 * Clients of the REST API: so many connections, each sending its next request when the last one is answered.
 *
 * Called by the scenarios, runs in this process. Fails: rejects with the first answer that is not a 2xx.
 */
import { Agent, request } from 'node:http'

export interface Load {
  readonly port: number
  readonly key: string
  readonly connections: number
  /** At most so many requests... */
  readonly requests: number
  /** ...and none begun after this time. */
  readonly limitMs: number
  /** Prefix of all paths; default /api/v1. */
  readonly base?: string
  /** Single sends where absent. */
  readonly path?: (number: number) => string
  /** Of a POST; a GET where absent. */
  readonly body?: (number: number) => Buffer
  /** Whose connections are used, and kept; of its own where absent. */
  readonly agent?: Agent
}

export interface LoadResult {
  readonly requests: number
  readonly durationMs: number
  /** Of every request, ms. */
  readonly latencies: readonly number[]
}

/** Requests are numbered from 0 on. */
export async function sendLoad(load: Load): Promise<LoadResult> {
  const agent = load.agent ?? new Agent({ keepAlive: true, maxSockets: load.connections })
  const latencies: number[] = []
  const startedAt = performance.now()
  let next = 0
  const client = async (): Promise<void> => {
    while (next < load.requests && performance.now() - startedAt < load.limitMs) {
      const number = next++
      const [path, body] = [load.path?.(number) ?? '/email/send', load.body?.(number)]
      const sentAt = performance.now()
      await ask(agent, load, path, body)
      latencies.push(performance.now() - sentAt)
    }
  }
  try {
    await Promise.all(Array.from({ length: load.connections }, client))
  } finally {
    if (!load.agent) agent.destroy()
  }
  return { requests: latencies.length, durationMs: performance.now() - startedAt, latencies }
}

function ask(
  agent: Agent,
  { port, key, base = '/api/v1' }: Load,
  path: string,
  body: Buffer | undefined,
): Promise<void> {
  const headers = {
    authorization: `Bearer ${key}`,
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length }),
  }
  const method = body === undefined ? 'GET' : 'POST'
  return new Promise((resolve, reject) => {
    const sending = request(
      { agent, host: '127.0.0.1', port, method, path: base + path, headers },
      response => {
        let answer = ''
        response.setEncoding('utf8').on('data', (text: string) => (answer += text))
        response.on('error', reject).on('end', () => {
          const status = response.statusCode ?? 0
          if (status >= 200 && status < 300) resolve()
          else reject(new Error(`the API answered ${status}: ${answer}`))
        })
      },
    )
    sending.on('error', reject).end(body)
  })
}
