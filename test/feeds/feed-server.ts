/** A server of feeds on the loopback: answers as set, by path, and counts what is asked. */
import { createServer, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

export interface FeedAnswer {
  readonly status?: number
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string | Buffer
  /** Waited for before it answers. */
  readonly after?: Promise<unknown>
}

export async function openFeedServer(t: Test) {
  const answers = new Map<string, FeedAnswer>()
  const asked: { readonly path: string; readonly headers: IncomingHttpHeaders }[] = []
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push({ path, headers: request.headers })
    const { status = 200, headers = {}, body = '', after }: FeedAnswer = answers.get(path) ?? { status: 404 }
    const { etag } = headers
    void Promise.resolve(after).then(() => {
      if (etag !== undefined && request.headers['if-none-match'] === etag) response.writeHead(304).end()
      else response.writeHead(status, headers).end(body)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    answer: (path: string, answer: FeedAnswer) => answers.set(path, answer),
  }
}

/** RSS with items of these names, the newest first; each has a guid, a link, a date and a summary. */
export function rss(names: readonly string[]): string {
  const items = names.map(
    (
      name,
      at,
    ) => `<item><title>${name}</title><link>/posts/${name}</link><guid isPermaLink="false">${name}</guid>
      <pubDate>${new Date(Date.UTC(2026, 0, 5, 9, 59) - at * 60_000).toUTCString()}</pubDate>
      <description>&lt;p&gt;About &lt;b&gt;${name}&lt;/b&gt;&lt;/p&gt;</description></item>`,
  )
  return `<?xml version="1.0"?><rss version="2.0"><channel><title>Our blog</title><link>/</link>${items.join('')}</channel></rss>`
}
