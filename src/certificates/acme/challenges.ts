/**
 * What the CA is shown as a proof that a name is ours: files below /.well-known/acme-challenge/ for HTTP-01, TXT records for DNS-01.
 *
 * Filled by `order-certificate.ts` for as long as an order takes; the HTTP listeners and the name server answer from it. Nothing else is to
 * be had here: the CA calls without a key, and from anywhere. Standards: RFC 8555 §8.3, §8.4. Fails: never.
 */
import type { TextRecords, ZoneSource } from '../../nameserver/name-server.js'
import type { HttpHandler } from '../../world/net/http-connections.js'

const PREFIX = '/.well-known/acme-challenge/'

/** Where `_acme-challenge.` of every name leads by a CNAME, below the zone that we answer for. */
export const CHALLENGE_LABEL = '_acme-challenge'

/** Takes back what was shown. */
export type Withdraw = () => void

export class Challenges {
  /** By token. */
  private readonly files = new Map<string, string>()
  private readonly texts = new Set<string>()

  showFile(token: string, content: string): Withdraw {
    this.files.set(token, content)
    return () => void this.files.delete(token)
  }

  showText(value: string): Withdraw {
    this.texts.add(value)
    return () => void this.texts.delete(value)
  }

  /** In clear and whatever else is served there: CAs begin at port 80 (RFC 8555 §8.3). */
  before(handler: HttpHandler): HttpHandler {
    return {
      handle: (request, response) => {
        const { url = '', method } = request
        if (!url.startsWith(PREFIX)) return handler.handle(request, response)
        const isRead = method === 'GET' || method === 'HEAD'
        const content = isRead ? this.files.get(url.slice(PREFIX.length).split('?', 1)[0] ?? '') : undefined
        response.writeHead(content === undefined ? (isRead ? 404 : 405) : 200, {
          'Content-Type': 'text/plain; charset=utf-8',
          'Cache-Control': 'no-store',
          'X-Content-Type-Options': 'nosniff',
          ...(isRead ? {} : { Allow: 'GET, HEAD' }),
        })
        response.end(method === 'HEAD' ? undefined : (content ?? 'there is no such challenge\n'))
        return Promise.resolve()
      },
      answerFault: (fault, address) => handler.answerFault(fault, address),
    }
  }

  /** The name is there at all times, so that nobody remembers that it was not. */
  readonly zone: ZoneSource = {
    find: async (label): Promise<TextRecords | undefined> =>
      label === CHALLENGE_LABEL ? { ttl: 0, values: [...this.texts] } : undefined,
  }
}
