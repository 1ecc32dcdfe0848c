/**
 * Repeated requests: the Idempotency-Key header, which every POST with an API key accepts.
 *
 * Used by `app.ts` around the handler. A key stands for one request of a workspace, kind of key, method and path. The store is
 * `accounts/idempotency-store.ts`; this file knows what is in flight, in memory: there is one server on a database.
 * Only successes are kept; a refused request may be tried again with the same key. How:
 * - A route with `keepsAnswer` stores its answer in the transaction that does the work: never the work without its answer.
 * - Any other route has its key reserved before the handler runs, and the answer stored afterwards. A process that dies in between leaves
 *   the reservation; whether the work was done is unknown, so a repeat is refused instead of executed twice.
 * - A route that only reads is executed each time.
 * Files are not compared: an upload is known by its key and query alone.
 * Fails: AppError validation_error (no key, or none that can be), conflict (the first one is in flight, or its outcome is unknown),
 * idempotency_conflict (another body).
 */
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { AppError, describeError } from '../core/errors.js'
import type { Log } from '../world/log.js'
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

/** What is stored under a key: an answer, or a reservation without one yet. */
export interface KeptRequest {
  readonly bodyHash: string
  readonly answer: KeptAnswer | undefined
}

/** The store of answers. What has expired is not found. */
export interface KeptAnswers {
  find(claim: IdempotencyClaim): Promise<KeptRequest | undefined>
  /** On disk once it resolves. */
  reserve(claim: IdempotencyClaim): Promise<void>
  /** Takes a reservation back. */
  release(claim: IdempotencyClaim): Promise<void>
  /** @param isSecret it is sealed */
  keep(claim: IdempotencyClaim, answer: KeptAnswer, isSecret: boolean): Promise<void>
}

/** How a route treats its claims (`route.ts`). */
export interface ClaimedRoute {
  readonly keepsAnswer?: true
  readonly isReadOnly?: true
  readonly answerHasSecret?: true
}

/** Whose request it is, and which. */
export interface ClaimScope {
  readonly principal: Pick<Principal, 'workspaceId' | 'isSandbox'>
  readonly method: string
  /** With its parameters filled in. */
  readonly path: string
}

/** @throws AppError validation_error */
export function readIdempotencyKey(request: IncomingMessage, isRequired: boolean): string | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined) {
    if (!isRequired) return undefined
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
   * Executes the first request, answers a repeated one as the first was.
   *
   * @throws AppError conflict, idempotency_conflict, and whatever the execution throws
   */
  async answer<A extends KeptAnswer>(
    route: ClaimedRoute,
    claim: IdempotencyClaim,
    execute: () => Promise<A>,
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
        mustBeSame(claim, kept.bodyHash)
        if (kept.answer) return { answer: kept.answer, isRepeat: true }
        throw new AppError(
          'conflict',
          'the first request with this Idempotency-Key was interrupted; check whether it took effect before you use a new key',
        )
      }
      const answer = route.keepsAnswer
        ? await execute()
        : await this.executeReserved(claim, execute, route.answerHasSecret === true)
      return { answer, isRepeat: false }
    } finally {
      this.inFlight.delete(claim.id)
    }
  }

  private async executeReserved<A extends KeptAnswer>(
    claim: IdempotencyClaim,
    execute: () => Promise<A>,
    isSecret: boolean,
  ): Promise<A> {
    await this.answers.reserve(claim)
    let answer: A
    try {
      answer = await execute()
    } catch (error) {
      await this.answers.release(claim).catch((failure: unknown) => this.report(failure))
      throw error
    }
    // The work is committed: it is reported as done even if a repeat cannot be answered.
    await this.answers
      .keep(claim, { status: answer.status, value: answer.value }, isSecret)
      .catch((failure: unknown) => this.report(failure))
    return answer
  }

  private report(failure: unknown): void {
    this.log.error('idempotency key not updated', { error: describeError(failure) })
  }
}

function mustBeSame(claim: IdempotencyClaim, bodyHash: string): void {
  if (claim.bodyHash !== bodyHash)
    throw new AppError('idempotency_conflict', 'this Idempotency-Key was used with another body', {
      path: KEY_HEADER,
    })
}
