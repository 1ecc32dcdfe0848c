/**
 * Repeated requests: the Idempotency-Key header of routes that declare it.
 *
 * Used by `app.ts` around the handler. A key stands for one request of a workspace, kind of key, method and path; its
 * answer is kept by the handler, in the transaction that does the work (`accounts/idempotency-store.ts`), so that there is
 * never a mail without its answer or an answer without its mail. This file knows what is in flight, in memory: there is one
 * server on a database. Only successes are kept; a refused request may be tried again with the same key.
 * Fails: AppError validation_error (no key, or none that can be), conflict (the first one is in flight),
 * idempotency_conflict (another body).
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AppError } from '../core/errors.js'
import type { LoopShare } from '../world/time/loop-share.js'
import { bodyDigest } from './body/body-digest.js'
import type { Principal } from './principal.js'

export const KEY_HEADER = 'Idempotency-Key'
/** Characters. */
const MOST_KEY = 255

/** What a request is known by; handlers pass it to the store with their answer. */
export interface IdempotencyClaim {
  /** Digest of workspace, kind of key, method, path and Idempotency-Key. */
  readonly id: string
  /** Digest of the body as canonical JSON. */
  readonly bodyHash: string
  /** When the request came, by the time that answers expire by (`world/time/expiry-time.ts`). */
  readonly madeAt: number
}

/** An answer as it was first given. */
export interface KeptAnswer {
  readonly status: number
  /** `data` of the answer. */
  readonly value: unknown
}

/** Looks for the answer that was kept under the claim's id and has not expired. */
export type FindAnswer = (
  claim: IdempotencyClaim,
) => Promise<(KeptAnswer & { readonly bodyHash: string }) | undefined>

/** Whose request it is, and which. */
export interface ClaimScope {
  readonly principal: Pick<Principal, 'workspaceId' | 'isSandbox'>
  readonly method: string
  /** With its parameters filled in. */
  readonly path: string
}

/** @throws AppError validation_error */
export function readIdempotencyKey(
  request: IncomingMessage,
  need: 'optional' | 'required',
): string | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined) {
    if (need === 'optional') return undefined
    throw invalidKey(`send a unique ${KEY_HEADER}: this request requires one`)
  }
  if (typeof key !== 'string' || key.length > MOST_KEY || !/^[\x20-\x7e]*[\x21-\x7e][\x20-\x7e]*$/.test(key))
    throw invalidKey(`${KEY_HEADER} must be 1 to ${MOST_KEY} printable ASCII characters`)
  return key
}

function invalidKey(message: string): AppError {
  return new AppError('validation_error', message, { path: KEY_HEADER })
}

/** @param body as it was read */
export async function makeClaim(
  { principal, method, path }: ClaimScope,
  key: string,
  body: unknown,
  loop: LoopShare,
  madeAt: number,
): Promise<IdempotencyClaim> {
  const { workspaceId, isSandbox } = principal
  const name = JSON.stringify([workspaceId, isSandbox, method, path, key])
  return {
    id: createHash('sha256').update(name).digest('base64url'),
    bodyHash: await bodyDigest(body, loop),
    madeAt,
  }
}

/** The requests with a key that are under way. */
export class Repeats {
  /** By which answers expire, ms since epoch UTC. */
  readonly time: () => number
  private readonly find: FindAnswer
  /** Body hashes by claim id. */
  private readonly inFlight = new Map<string, string>()

  constructor(find: FindAnswer, time: () => number) {
    this.find = find
    this.time = time
  }

  /**
   * Executes the first request, answers a repeated one as the first was.
   *
   * @throws AppError conflict, idempotency_conflict, and whatever the execution throws
   */
  async answer<A extends KeptAnswer>(
    claim: IdempotencyClaim,
    execute: () => Promise<A>,
  ): Promise<{ readonly answer: A | KeptAnswer; readonly isRepeat: boolean }> {
    const other = this.inFlight.get(claim.id)
    if (other !== undefined) {
      mustBeSame(claim, other)
      throw new AppError('conflict', 'the first request with this Idempotency-Key is still being executed')
    }
    this.inFlight.set(claim.id, claim.bodyHash)
    try {
      const kept = await this.find(claim)
      if (!kept) return { answer: await execute(), isRepeat: false }
      mustBeSame(claim, kept.bodyHash)
      return { answer: kept, isRepeat: true }
    } finally {
      this.inFlight.delete(claim.id)
    }
  }
}

function mustBeSame(claim: IdempotencyClaim, bodyHash: string): void {
  if (claim.bodyHash !== bodyHash)
    throw new AppError('idempotency_conflict', 'this Idempotency-Key was used with another body', {
      path: KEY_HEADER,
    })
}
