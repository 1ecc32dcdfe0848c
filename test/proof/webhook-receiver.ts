/** A receiver of webhooks that notes under which ids each event came, and refuses some of the first attempts. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Scope } from '../support/scope.js'
import { fraction } from './mailbox.js'

export interface WebhookLedger {
  readonly url: string
  /** Ids of deliveries, by what the event is about (`contact.created ann@x.example`). */
  readonly ids: ReadonlyMap<string, ReadonlySet<string>>
  /** Requests that came, refused ones included. */
  readonly received: number
}

export interface LedgerOptions {
  readonly seed: number
  /** Share of deliveries whose first attempt is answered with 500. */
  readonly refusedShare: number
}

export async function openWebhookLedger(
  t: Scope,
  { seed, refusedShare }: LedgerOptions,
): Promise<WebhookLedger> {
  const ids = new Map<string, Set<string>>()
  const seen = new Set<string>()
  let received = 0
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      received += 1
      const id = String(request.headers['x-service-delivery-id'])
      const isFirst = !seen.has(id)
      seen.add(id)
      if (isFirst && fraction(`${seed} ${id}`) < refusedShare) {
        response.writeHead(500).end()
        return
      }
      const { event, data } = JSON.parse(body) as { event: string; data: { email?: string; to?: string } }
      const about = `${event} ${data.email ?? data.to ?? ''}`
      ids.set(about, (ids.get(about) ?? new Set()).add(id))
      response.writeHead(200).end('ok')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    ids,
    get received() {
      return received
    },
  }
}
