/**
 * Answers on their way to clients: as octets, made once where they never change, and within one bound where they are many.
 *
 * Used by `app.ts`. An answer counts until its client has fetched it or is gone, so that clients who ask for long lists and read
 * none of them cannot fill the memory. Fails: AppError unavailable where there is no room.
 */
import type { ServerResponse } from 'node:http'
import { AppError } from '../../core/errors.js'
import { OctetShares } from '../body/octet-shares.js'
import type { Route } from '../route.js'

const TOTAL = 128 * 1_024 * 1_024
/** What is shorter is bounded by the number of connections. */
const COUNTED_FROM = 16_384
const COME_AGAIN_MS = 5_000

export class AnswerMemory {
  private readonly shares = new OctetShares({ total: TOTAL, perHolder: TOTAL / 4 })
  private readonly fixed = new WeakMap<Route, Buffer>()

  /** The body of the route's answer: text as it is, anything else as JSON. */
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
      throw new AppError('unavailable', 'too many answers wait to be fetched; read them, then try again', {
        retryAfterMs: COME_AGAIN_MS,
      })
    response.once('close', () => hold.release())
  }
}
