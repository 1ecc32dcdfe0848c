/** Declared public pages served over real HTTP on the loopback, and a visitor who tells everything about the answer. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import type { Test } from 'tap'
import { buildPublicApp } from '../../../src/http/public/public-app.js'
import type { PublicRoute } from '../../../src/http/public/public-route.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { listenHttp } from '../../../src/world/net/listen.js'

export interface Seen {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Visiting {
  readonly method?: string
  /** The body of a form; text is sent unchanged. */
  readonly form?: Readonly<Record<string, string | readonly string[]>> | string
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Asks for a page, as a browser does that follows no redirect. @param url whole */
export function visit(url: string, { method, form, json, headers = {} }: Visiting = {}): Promise<Seen> {
  const body = json === undefined ? (form === undefined ? undefined : encoded(form)) : JSON.stringify(json)
  const type = json === undefined ? 'application/x-www-form-urlencoded' : 'application/json'
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      agent: false,
      headers: {
        ...(body === undefined ? {} : { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) }),
        ...headers,
      },
    })
    request.on('error', reject)
    request.on('response', response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      )
    })
    request.end(body)
  })
}

function encoded(form: NonNullable<Visiting['form']>): string {
  if (typeof form === 'string') return form
  return new URLSearchParams(
    Object.entries(form).flatMap(([name, value]) =>
      (typeof value === 'string' ? [value] : value).map(one => [name, one] as [string, string]),
    ),
  ).toString()
}

export async function servePages(
  t: Test,
  routes: readonly PublicRoute[],
  options: { rateLimit?: number; trustedProxies?: readonly string[] } = {},
) {
  const clock = new FakeClock()
  const log = new FakeLog()
  let ids = 0
  const app = buildPublicApp(
    { clock, log, newId: () => `page-${++ids}`, rateLimit: 0, trustedProxies: [], ...options },
    routes,
  )
  const limits = { connections: 1_000, connectionsPerAddress: 1_000 }
  const listener = await listenHttp({ host: '127.0.0.1', port: 0 }, app, limits, clock)
  t.teardown(() => listener.close(0))
  const { port } = listener.address
  return {
    port,
    clock,
    log,
    see: (path: string, visiting?: Visiting) => visit(`http://127.0.0.1:${port}${path}`, visiting),
  }
}
