/**
 * A memory budget shared fairly among holders: one for request bodies, one for answers that clients have not read yet.
 *
 * Short ones are not counted; the number of connections limits them, so a short message is never refused because of uploads. Counts
 * only, never waits. Fails: AppError unavailable with a retry time if the budget is used up.
 */
import { AppError } from '../core/errors.js'

const RETRY_AFTER_MS = 5_000

export interface BudgetRule {
  /** Octets in total. */
  readonly total: number
  /** Octets per holder: an API key, a workspace, or an address without a key. */
  readonly perHolder: number
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
  private readonly held = new Map<string, number>()
  private total = 0

  constructor(rule: BudgetRule) {
    this.rule = rule
  }

  hold(holder: string): MemoryHold {
    let taken = 0
    let isOver = false
    return {
      reach: octets => {
        if (isOver || octets <= taken || octets < this.rule.countedFrom) return
        this.take(holder, octets - taken)
        taken = octets
      },
      release: () => {
        isOver = true
        this.giveBack(holder, taken)
        taken = 0
      },
    }
  }

  private take(holder: string, octets: number): void {
    const { total, perHolder, refusal } = this.rule
    const theirs = (this.held.get(holder) ?? 0) + octets
    if (theirs > perHolder || this.total + octets > total)
      throw new AppError('unavailable', refusal, { retryAfterMs: RETRY_AFTER_MS })
    this.held.set(holder, theirs)
    this.total += octets
  }

  private giveBack(holder: string, octets: number): void {
    const left = (this.held.get(holder) ?? 0) - octets
    if (left > 0) this.held.set(holder, left)
    else this.held.delete(holder)
    this.total -= octets
  }
}

const MEGABYTE = 1_024 * 1_024

/** @param largest octets of the largest body of any route; at least two of them fit */
export function bodyBudget(largest: number): MemoryBudget {
  const total = Math.max(256 * MEGABYTE, 2 * largest)
  const refusal = 'too many uploads are in progress; try again in a few seconds'
  return new MemoryBudget({ total, perHolder: total / 2, countedFrom: 32_768, refusal })
}

export function answerBudget(): MemoryBudget {
  const total = 128 * MEGABYTE
  const refusal = 'too many responses are waiting to be read; read them, then try again'
  return new MemoryBudget({ total, perHolder: total / 4, countedFrom: 16_384, refusal })
}
