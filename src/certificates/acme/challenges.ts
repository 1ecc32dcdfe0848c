/**
 * Challenge responses: files below /.well-known/acme-challenge/ for HTTP-01, TXT records for DNS-01.
 *
 * Filled by `order-certificate.ts` during an order, served by the HTTP listeners and the name server. Public, since the CA connects from
 * anywhere without a key; serves nothing else. Standards: RFC 8555 §8.3, §8.4.
 */
import type { TextRecords, ZoneSource } from '../../nameserver/name-server.js'
import type { HttpHandler } from '../../world/net/http-connections.js'

const PREFIX = '/.well-known/acme-challenge/'

/** CNAME target of every name's `_acme-challenge.` record, in the zone that we serve. */
export const CHALLENGE_LABEL = '_acme-challenge'

/** Removes the response. */
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

  /** Over plain HTTP and every other listener; CAs start at port 80 (RFC 8555 §8.3). */
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
        response.end(method === 'HEAD' ? undefined : (content ?? 'no such challenge\n'))
        return Promise.resolve()
      },
      answerFault: (fault, address) => handler.answerFault(fault, address),
    }
  }

  /** The name always exists, so that resolvers never cache its absence. */
  readonly zone: ZoneSource = {
    find: async (label): Promise<TextRecords | undefined> =>
      label === CHALLENGE_LABEL ? { ttl: 0, values: [...this.texts] } : undefined,
  }
}
