/**
 * Counts failed logins per client address and locks out who fails too often.
 *
 * Used by the submission receiver. A locked-out address is refused before its password is looked at, so that guessing
 * learns nothing; one customer of an IPv6 provider, who has a /64 of addresses, counts as one. In memory and bounded; a restart forgives. Fails: never; `check` says how long the lock lasts.
 */
import { addressKey } from '../../world/net/ip-address.js'
import type { Clock } from '../../world/time/clock.js'

export interface LoginGuardLimits {
  /** Failures within `lockoutMs` that lock an address out. */
  readonly failures: number
  readonly lockoutMs: number
}

interface Failures {
  count: number
  /** When the first of them was, or when the lock began; ms of the monotonic clock. */
  since: number
}

/** Addresses remembered; beyond it the one that failed longest ago is forgotten. */
const MOST_ADDRESSES = 50_000

export class LoginGuard {
  private readonly clock: Clock
  private readonly limits: LoginGuardLimits
  private readonly records = new Map<string, Failures>()

  constructor(clock: Clock, limits: LoginGuardLimits) {
    this.clock = clock
    this.limits = limits
  }

  get lockoutMs(): number {
    return this.limits.lockoutMs
  }

  /** @returns for how long the address is still locked out, ms; 0 when it is not */
  lockedForMs(address: string): number {
    const record = this.current(addressKey(address))
    if (record === undefined || record.count < this.limits.failures) return 0
    return record.since + this.limits.lockoutMs - this.clock.monotonic()
  }

  failed(address: string): void {
    const name = addressKey(address)
    const now = this.clock.monotonic()
    const record = this.current(name) ?? { count: 0, since: now }
    record.count += 1
    // The lock lasts from the failure that brought it.
    if (record.count === this.limits.failures) record.since = now
    this.records.delete(name)
    this.records.set(name, record)
    const [eldest] = this.records.keys()
    if (this.records.size > MOST_ADDRESSES && eldest !== undefined) this.records.delete(eldest)
  }

  /** The operator says so. @returns whether there was anything to forget */
  forgive(address: string): boolean {
    return this.records.delete(addressKey(address))
  }

  /** A right password: what was mistyped before does not count. */
  succeeded(address: string): void {
    this.records.delete(addressKey(address))
  }

  private current(name: string): Failures | undefined {
    const record = this.records.get(name)
    if (record === undefined || record.since + this.limits.lockoutMs > this.clock.monotonic()) return record
    this.records.delete(name)
    return undefined
  }
}
