/**
 * Challenge responses: files below /.well-known/acme-challenge/ for HTTP-01, TXT records for DNS-01.
 *
 * Stored by `order-certificate.ts` during an order, served by the HTTP listeners and the name server of every node that shares the database:
 * the CA may reach any of them. Public, since the CA connects from anywhere without a key; serves nothing else. Requests that come while
 * the database is read share the next read; nothing is cached, since the CA asks as soon as a challenge is stored.
 * Standards: RFC 8555 §8.3, §8.4.
 * Fails: as the database does; a request is then answered with 503.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Database } from '../../db/database.js'
import type { TextRecords, ZoneSource } from '../../nameserver/name-server.js'
import type { HttpHandler } from '../../world/net/http-connections.js'
import type { Clock } from '../../world/time/clock.js'
import { deleteChallenges, insertChallenge, listChallenges, type Challenge } from './challenge-store.js'

const PREFIX = '/.well-known/acme-challenge/'

/** RFC 8555 §8: base64url; it becomes part of a path. */
export const TOKEN = /^[A-Za-z0-9_-]{16,256}$/

/** CNAME target of every name's `_acme-challenge.` record, in the zone that we serve. */
export const CHALLENGE_LABEL = '_acme-challenge'

/** Longer than the CA takes for an order; it bounds what an interrupted order leaves. */
const LIFETIME_MS = 3_600_000

type Pending = Omit<Challenge, 'expiresAt'>

export class Challenges {
  private readonly database: Database
  private readonly clock: Pick<Clock, 'now'>
  private reading: Promise<unknown> = Promise.resolve()
  private next: Promise<readonly Pending[]> | undefined

  constructor(database: Database, clock: Pick<Clock, 'now'>) {
    this.database = database
    this.clock = clock
  }

  async show(challenge: Pending): Promise<void> {
    const now = this.clock.now()
    await this.database.write(tx =>
      insertChallenge(tx.db, { ...challenge, expiresAt: now + LIFETIME_MS }, now),
    )
  }

  async withdraw(tokens: readonly string[]): Promise<void> {
    await this.database.write(tx => deleteChallenges(tx.db, tokens))
  }

  /** Over plain HTTP and every other listener; CAs start at port 80 (RFC 8555 §8.3). */
  before(handler: HttpHandler): HttpHandler {
    return {
      handle: (request, response) =>
        request.url?.startsWith(PREFIX) ? this.serve(request, response) : handler.handle(request, response),
      answerFault: (fault, address) => handler.answerFault(fault, address),
    }
  }

  /** The name always exists, so that resolvers never cache its absence. */
  readonly zone: ZoneSource = {
    find: async (label): Promise<TextRecords | undefined> => {
      if (label !== CHALLENGE_LABEL) return undefined
      const texts = (await this.pending()).filter(({ kind }) => kind === 'dns')
      return { ttl: 0, values: texts.map(({ content }) => content) }
    },
  }

  private async serve({ url = '', method }: IncomingMessage, response: ServerResponse): Promise<void> {
    const isRead = method === 'GET' || method === 'HEAD'
    const token = url.slice(PREFIX.length).split('?', 1)[0] ?? ''
    const { status, text } = isRead ? await this.answer(token) : { status: 405, text: ABSENT }
    response.writeHead(status, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...(isRead ? {} : { Allow: 'GET, HEAD' }),
    })
    response.end(method === 'HEAD' ? undefined : text)
  }

  private async answer(token: string): Promise<{ status: number; text: string }> {
    if (!TOKEN.test(token)) return { status: 404, text: ABSENT }
    try {
      const found = (await this.pending()).find(one => one.kind === 'http' && one.token === token)
      return found ? { status: 200, text: found.content } : { status: 404, text: ABSENT }
    } catch {
      return { status: 503, text: 'the database does not answer\n' }
    }
  }

  /** Of all nodes. A read that has begun may miss what was stored since, so it is not shared with later callers. */
  private pending(): Promise<readonly Pending[]> {
    if (this.next) return this.next
    const after = this.reading.catch(() => {})
    const next = after.then(() => {
      this.next = undefined
      return listChallenges(this.database.reader, this.clock.now())
    })
    this.reading = this.next = next
    return next
  }
}

const ABSENT = 'no such challenge\n'
