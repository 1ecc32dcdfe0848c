/**
 * Memory budget of answers being sent, and a cache of answers that never change.
 *
 * Used by `app.ts`. An answer counts until the client has fetched it or is gone, so that clients cannot fill memory with lists they
 * never read. Fails: AppError unavailable if the budget is used up.
 */
import type { ServerResponse } from 'node:http'
import { AppError } from '../../core/errors.js'
import { OctetShares } from '../body/octet-shares.js'
import type { Route } from '../route.js'

const TOTAL = 128 * 1_024 * 1_024
/** Shorter answers are not counted: the number of connections limits them. */
const COUNTED_FROM = 16_384
const RETRY_AFTER_MS = 5_000

export class AnswerMemory {
  private readonly shares = new OctetShares({ total: TOTAL, perHolder: TOTAL / 4 })
  private readonly fixed = new WeakMap<Route, Buffer>()

  /** Serializes an answer: text unchanged, anything else as JSON. */
  octetsOf(route: Route, body: unknown): Buffer {
    const known = this.fixed.get(route)
    if (known) return known
    const octets = Buffer.from(typeof body === 'string' && route.head.mediaType ? body : JSON.stringify(body))
    if (route.head.isFixed) this.fixed.set(route, octets)
    return octets
  }

  /** @throws AppError unavailable */
  take(octets: number, holder: string, response: ServerResponse): void {
    if (octets < COUNTED_FROM) return
    const hold = this.shares.hold(holder)
    if (!hold.take(octets))
      throw new AppError(
        'unavailable',
        'too many responses are waiting to be read; read them, then try again',
        {
          retryAfterMs: RETRY_AFTER_MS,
        },
      )
    response.once('close', () => hold.release())
  }
}
