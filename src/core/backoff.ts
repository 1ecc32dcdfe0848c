/**
 * When to try again: exponential growth with a ceiling and jitter (RFC 5321 §4.5.4.1 asks for growing intervals).
 *
 * Pure; used by the outbound queue and by everything else that retries.
 */

export interface BackoffPolicy {
  /** Delay after the first failure, ms. */
  readonly firstMs: number
  /** Growth from one delay to the next, >= 1. */
  readonly factor: number
  /** Ceiling of a single delay, ms. */
  readonly maxMs: number
}

/** Share of a delay by which jitter may shorten or lengthen it, so that what failed together is not retried together. */
export const JITTER = 0.1

/**
 * @param failures how many attempts have failed so far, >= 1
 * @param fraction uniform random number in [0, 1)
 * @returns delay until the next attempt, ms
 */
export function retryDelayMs(policy: BackoffPolicy, failures: number, fraction: number): number {
  const planned = Math.min(policy.maxMs, policy.firstMs * policy.factor ** (failures - 1))
  return Math.round(planned * (1 - JITTER + 2 * JITTER * fraction))
}
