/**
 * Idempotent requests: the Idempotency-Key header, accepted by every POST with an API key.
 *
 * Used by `app.ts` around the handler. A key identifies a request within a workspace, kind of key, method and path. Answers are stored by
 * `accounts/idempotency-store.ts`; requests in flight are tracked in memory, since one server owns the database.
 * Only successes are stored; a failed request may be retried with the same key.
 * - A route with `keepsAnswer` stores its answer in the transaction of the work, so neither exists without the other.
 * - For other routes the key is reserved before the handler runs and the answer stored afterwards. After a crash in between, it is
 *   unknown whether the work was done, so a repeat is refused instead of executed twice.
 * - A read-only route is executed each time.
 * - An uploaded file is known once it has been read: the key is reserved with the digest of the query, and the answer is stored with that
 *   of the file as well. The file of a repeat is read to its end and compared.
 * Fails: AppError validation_error (missing or invalid key), conflict (first request in flight, or its outcome unknown),
 * idempotency_conflict (different body).
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AppError, describeError } from '../core/errors.js'
import { given } from '../core/given.js'
import type { Log } from '../world/log.js'
import type { Principal } from './principal.js'

export const KEY_HEADER = 'Idempotency-Key'
/** Characters. */
const MAX_KEY = 255

/** Identifies a request; handlers pass it to the store with their answer. */
export interface IdempotencyClaim {
  /** Digest of workspace, kind of key, method, path and Idempotency-Key. */
  readonly id: string
  /** Digest of the body as canonical JSON. */
  readonly bodyHash: string
  /** Time of the request on the clock that answers expire by (`world/time/expiry-time.ts`). */
  readonly madeAt: number
}

/** The first answer to a request. */
export interface KeptAnswer {
  readonly status: number
  /** `data` of the answer. */
  readonly value: unknown
  /** Version of the resource (`preconditions.ts`), if the answer has an ETag. */
  readonly etag?: string
}

/** Stored under a key: an answer, or a reservation without one. */
export interface KeptRequest {
  readonly bodyHash: string
  readonly answer: KeptAnswer | undefined
}

/** The store of answers. Expired ones are not found. */
export interface KeptAnswers {
  find(claim: IdempotencyClaim): Promise<KeptRequest | undefined>
  /** Durable once it resolves. */
  reserve(claim: IdempotencyClaim): Promise<void>
  /** Deletes a reservation. */
  release(claim: IdempotencyClaim): Promise<void>
  /** Stores the digest of the claim as well. @param isSecret encrypt the answer */
  keep(claim: IdempotencyClaim, answer: KeptAnswer, isSecret: boolean): Promise<void>
}

/** How a route handles repeats (`route.ts`). */
export interface ClaimedRoute {
  readonly keepsAnswer?: true
  readonly isReadOnly?: true
  readonly answerHasSecret?: true
}

/** Scope of an idempotency key. */
export interface ClaimScope {
  readonly principal: Pick<Principal, 'workspaceId' | 'isSandbox'>
  readonly method: string
  /** With parameters filled in. */
  readonly path: string
}

/** @throws AppError validation_error */
export function readIdempotencyKey(request: IncomingMessage, isRequired: boolean): string | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined) {
    if (!isRequired) return undefined
    throw invalidKey(`send a unique ${KEY_HEADER}: this request requires one`)
  }
  if (typeof key !== 'string' || key.length > MAX_KEY || !/^[\x20-\x7e]+$/.test(key) || key.trim() === '')
    throw invalidKey(`${KEY_HEADER} must be 1 to ${MAX_KEY} printable ASCII characters`)
  return key
}

function invalidKey(message: string): AppError {
  return new AppError('validation_error', message, { path: KEY_HEADER })
}

/** @param bodyHash digest of the body, and of the query if there is one */
export function makeClaim(
  { principal, method, path }: ClaimScope,
  key: string,
  bodyHash: string,
  madeAt: number,
): IdempotencyClaim {
  const { workspaceId, isSandbox } = principal
  const name = JSON.stringify([workspaceId, isSandbox, method, path, key])
  return { id: createHash('sha256').update(name).digest('base64url'), bodyHash, madeAt }
}

/** Executes requests with a key at most once. */
export class Repeats {
  /** Clock that answers expire by, ms since epoch UTC. */
  readonly time: () => number
  private readonly answers: KeptAnswers
  private readonly log: Log
  /** Body hashes by claim id. */
  private readonly inFlight = new Map<string, string>()

  constructor(answers: KeptAnswers, time: () => number, log: Log) {
    this.answers = answers
    this.time = time
    this.log = log
  }

  /**
   * Executes a first request, and answers a repeat with the first answer.
   *
   * @param digestUpload for an upload: reads the rest of the file and digests the whole request
   * @throws AppError conflict, idempotency_conflict, and errors of the execution
   */
  async answer<A extends KeptAnswer>(
    route: ClaimedRoute,
    claim: IdempotencyClaim,
    execute: () => Promise<A>,
    digestUpload?: () => Promise<string>,
  ): Promise<{ readonly answer: A | KeptAnswer; readonly isRepeat: boolean }> {
    if (route.isReadOnly) return { answer: await execute(), isRepeat: false }
    const other = this.inFlight.get(claim.id)
    if (other !== undefined) {
      mustBeSame(claim, other)
      throw new AppError('conflict', 'the first request with this Idempotency-Key is still being executed')
    }
    this.inFlight.set(claim.id, claim.bodyHash)
    try {
      const kept = await this.answers.find(claim)
      if (kept) {
        const isUploaded = kept.answer !== undefined && digestUpload !== undefined
        mustBeSame(isUploaded ? { bodyHash: await digestUpload() } : claim, kept.bodyHash)
        if (kept.answer) return { answer: kept.answer, isRepeat: true }
        throw new AppError(
          'conflict',
          'the first request with this Idempotency-Key was interrupted; check whether it took effect before you use a new key',
        )
      }
      const answer = route.keepsAnswer
        ? await execute()
        : await this.executeReserved(route, claim, execute, digestUpload)
      return { answer, isRepeat: false }
    } finally {
      this.inFlight.delete(claim.id)
    }
  }

  private async executeReserved<A extends KeptAnswer>(
    { answerHasSecret }: ClaimedRoute,
    claim: IdempotencyClaim,
    execute: () => Promise<A>,
    digestUpload: (() => Promise<string>) | undefined,
  ): Promise<A> {
    await this.answers.reserve(claim)
    let answer: A
    try {
      answer = await execute()
    } catch (error) {
      await this.answers.release(claim).catch((failure: unknown) => this.report(failure))
      throw error
    }
    // The work is committed, so the request succeeds even if its answer cannot be stored.
    await this.keep(claim, answer, answerHasSecret === true, digestUpload).catch((failure: unknown) =>
      this.report(failure),
    )
    return answer
  }

  private async keep(
    claim: IdempotencyClaim,
    { status, value, etag }: KeptAnswer,
    isSecret: boolean,
    digestUpload: (() => Promise<string>) | undefined,
  ): Promise<void> {
    const bodyHash = digestUpload ? await digestUpload() : claim.bodyHash
    await this.answers.keep({ ...claim, bodyHash }, { status, value, ...given({ etag }) }, isSecret)
  }

  private report(failure: unknown): void {
    this.log.error('idempotency key not updated', { error: describeError(failure) })
  }
}

function mustBeSame(claim: Pick<IdempotencyClaim, 'bodyHash'>, bodyHash: string): void {
  if (claim.bodyHash !== bodyHash)
    throw new AppError('idempotency_conflict', 'this Idempotency-Key was used with another body', {
      path: KEY_HEADER,
    })
}
