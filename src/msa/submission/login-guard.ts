/**
 * Counts failed logins per client address and locks out who fails too often.
 *
 * Used by the submission receiver. A locked-out address is refused before its password is looked at, so that guessing
 * learns nothing; one customer of an IPv6 provider, who has a /64 of addresses, counts as one. A key that has logged in from an address
 * before is never locked out there, whatever its neighbours behind the same address do. In memory and bounded; a restart forgives.
 * Never throws.
 */
import { createHash } from 'node:crypto'
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
  /** Address and hash of keys that have logged in from there; the least recently used is forgotten first. */
  private readonly known = new Set<string>()

  constructor(clock: Clock, limits: LoginGuardLimits) {
    this.clock = clock
    this.limits = limits
  }

  get lockoutMs(): number {
    return this.limits.lockoutMs
  }

  /** @returns for how long this password is refused from the address, ms; 0 when it is not */
  lockedForMs(address: string, password: string): number {
    return this.known.has(pairOf(address, password)) ? 0 : this.addressLockedForMs(address)
  }

  /** @returns for how long unknown passwords are refused from the address, ms; 0 when they are not */
  addressLockedForMs(address: string): number {
    const record = this.current(addressKey(address))
    if (record === undefined || record.count < this.limits.failures) return 0
    return record.since + this.limits.lockoutMs - this.clock.monotonic()
  }

  failed(address: string, password: string): void {
    this.known.delete(pairOf(address, password))
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
  succeeded(address: string, password: string): void {
    if (this.addressLockedForMs(address) === 0) this.records.delete(addressKey(address))
    const pair = pairOf(address, password)
    this.known.delete(pair)
    this.known.add(pair)
    const [eldest] = this.known
    if (this.known.size > MOST_ADDRESSES && eldest !== undefined) this.known.delete(eldest)
  }

  private current(name: string): Failures | undefined {
    const record = this.records.get(name)
    if (record === undefined || record.since + this.limits.lockoutMs > this.clock.monotonic()) return record
    this.records.delete(name)
    return undefined
  }
}

function pairOf(address: string, password: string): string {
  return `${addressKey(address)} ${createHash('sha256').update(password).digest('base64')}`
}
