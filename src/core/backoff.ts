/** Retry delays: exponential growth with a ceiling and jitter (RFC 5321 §4.5.4.1). Pure. */

export interface BackoffPolicy {
  readonly firstMs: number
  /** Growth factor of the delay, >= 1. */
  readonly factor: number
  readonly maxMs: number
}

/** Maximum deviation of a delay as a share of it, so that simultaneous failures are not retried together. */
export const JITTER = 0.1

/**
 * @param failures failed attempts so far, >= 1
 * @param fraction uniform random number in [0, 1)
 * @returns delay until the next attempt, ms
 */
export function retryDelayMs(policy: BackoffPolicy, failures: number, fraction: number): number {
  const planned = Math.min(policy.maxMs, policy.firstMs * policy.factor ** (failures - 1))
  return Math.round(planned * (1 - JITTER + 2 * JITTER * fraction))
}
