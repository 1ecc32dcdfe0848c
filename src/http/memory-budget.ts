/**
 * Memory shared fairly among workspaces and their keys: one budget for request bodies, one for answers that clients have not read yet.
 *
 * Short ones are not counted; the number of connections limits them, so a short message is never refused because of uploads. Counts
 * only, never waits. Fails: AppError unavailable with a retry time if the holder's share is used up.
 */
import { AppError } from '../core/errors.js'
import { FairShares } from '../core/fair-shares.js'
import type { Holder } from '../core/holder.js'

const RETRY_AFTER_MS = 5_000

export interface BudgetRule {
  /** Octets in total. */
  readonly total: number
  /** Octets; shorter ones are free. */
  readonly countedFrom: number
  /** Message of the error. */
  readonly refusal: string
}

/** Memory held by one request. */
export interface MemoryHold {
  /** Raises what is held to `octets`. @throws AppError unavailable */
  reach(octets: number): void
  /** Idempotent. */
  release(): void
}

export class MemoryBudget {
  private readonly rule: BudgetRule
  private readonly shares: FairShares

  constructor(rule: BudgetRule) {
    this.rule = rule
    this.shares = new FairShares(rule.total)
  }

  hold(holder: Holder): MemoryHold {
    let taken = 0
    let isOver = false
    return {
      reach: octets => {
        if (isOver || octets <= taken || octets < this.rule.countedFrom) return
        if (this.shares.take(holder, octets - taken) !== undefined)
          throw new AppError('unavailable', this.rule.refusal, { retryAfterMs: RETRY_AFTER_MS })
        taken = octets
      },
      release: () => {
        isOver = true
        this.shares.release(holder, taken)
        taken = 0
      },
    }
  }
}

const MEGABYTE = 1_024 * 1_024

/** @param largest octets of the largest body of any route; a key that is alone may send one */
export function bodyBudget(largest: number): MemoryBudget {
  const total = Math.max(256 * MEGABYTE, 4 * largest)
  const refusal = 'too many uploads are in progress; try again in a few seconds'
  return new MemoryBudget({ total, countedFrom: 32_768, refusal })
}

export function answerBudget(): MemoryBudget {
  const total = 128 * MEGABYTE
  const refusal = 'too many responses are waiting to be read; read them, then try again'
  return new MemoryBudget({ total, countedFrom: 16_384, refusal })
}
