/**
 * Limits password guessing, by SMTP and by operators' sign-in, without locking out clients that share an address with the attacker.
 *
 * Failures are counted three ways, each over `lockoutMs`:
 * - per address and account: after `failures`, the pair is refused before its password is checked;
 * - per account over all addresses: after ten times `failures`, it is refused everywhere;
 * - per address over all accounts: after `failures`, further failed logins get a lockout reply. Passwords are still checked, so a
 *   valid one logs in at once.
 * A password that has logged in from an address is never locked out there. An IPv6 /64 counts as one address.
 * In memory and bounded; a restart clears it. Never throws.
 */
import { createHash } from 'node:crypto'
import { addressKey } from '../world/net/ip-address.js'
import type { Clock } from '../world/time/clock.js'

/** What a client tries to log in with. Only a hash of the password is kept. */
export interface Login {
  /** What a guesser holds fixed: an email address, or the start of an API key. */
  readonly account: string
  readonly password: string
  /** The account is part of the password, so it is never shown. */
  readonly isAccountSecret?: true
}

export interface LoginGuardLimits {
  readonly failures: number
  readonly lockoutMs: number
}

/** Consequence of one failed login. */
export interface FailureEffect {
  /** This failure locked the account out, at its address or everywhere. */
  readonly lockedOut?: 'address' | 'everywhere'
  /** Over 0 if the address had already used up its failures, ms. */
  readonly throttledForMs: number
}

/** A lockout now in effect. */
export interface LoginLock {
  /** Failures by an address, on an account everywhere, or on an account from one address. */
  readonly scope: 'address' | 'account' | 'account_at_address'
  /** IPv4 address or IPv6 /64. */
  readonly address: string | undefined
  /** Undefined if the account is secret. */
  readonly account: string | undefined
  readonly failures: number
  readonly remainingMs: number
}

const FACTOR_EVERYWHERE = 10
const MAX_RECORDS = 50_000
/** Characters of an account's name that are kept. */
const MAX_SHOWN = 254

export class LoginGuard {
  private readonly limits: LoginGuardLimits
  private readonly pairs: FailureCounts
  private readonly accounts: FailureCounts
  private readonly addresses: FailureCounts
  /** Address and hash of keys that have logged in from there; the least recently used is evicted first. */
  private readonly known = new Set<string>()

  constructor(clock: Clock, limits: LoginGuardLimits) {
    this.limits = limits
    this.pairs = new FailureCounts(clock, limits)
    this.accounts = new FailureCounts(clock, limits, FACTOR_EVERYWHERE)
    this.addresses = new FailureCounts(clock, limits)
  }

  get lockoutMs(): number {
    return this.limits.lockoutMs
  }

  /** @returns how long this password stays refused from the address, ms; 0 if it is not */
  lockedForMs(address: string, login: Login): number {
    if (this.known.has(knownKey(address, login))) return 0
    const account = hashOf(login.account)
    return Math.max(this.pairs.overForMs(pairKey(address, account)), this.accounts.overForMs(account))
  }

  failed(address: string, login: Login): FailureEffect {
    this.known.delete(knownKey(address, login))
    const account = hashOf(login.account)
    const throttledForMs = this.addresses.overForMs(addressKey(address))
    const shownAccount = login.isAccountSecret ? undefined : login.account.slice(0, MAX_SHOWN)
    this.addresses.add(addressKey(address), undefined)
    const isLockedHere = this.pairs.add(pairKey(address, account), shownAccount)
    const isLockedEverywhere = this.accounts.add(account, shownAccount)
    if (isLockedEverywhere) return { throttledForMs, lockedOut: 'everywhere' }
    return isLockedHere ? { throttledForMs, lockedOut: 'address' } : { throttledForMs }
  }

  /** Clears the failures of an address and of the accounts that failed there. @returns whether there were any */
  forgive(address: string): boolean {
    const accounts = this.pairs.deleteStartingWith(pairKey(address, ''))
    for (const account of accounts) this.accounts.delete(account)
    return this.addresses.delete(addressKey(address)) || accounts.length > 0
  }

  /** Ending last first. */
  locks(): LoginLock[] {
    return [
      ...this.addresses.over().map(({ name, shown: _, ...rest }) => ({
        scope: 'address' as const,
        address: name,
        account: undefined,
        ...rest,
      })),
      ...this.accounts.over().map(({ name: _, shown, ...rest }) => ({
        scope: 'account' as const,
        address: undefined,
        account: shown,
        ...rest,
      })),
      ...this.pairs.over().map(({ name, shown, ...rest }) => ({
        scope: 'account_at_address' as const,
        address: name.slice(0, name.indexOf(' ')),
        account: shown,
        ...rest,
      })),
    ].sort((a, b) => b.remainingMs - a.remainingMs)
  }

  /** Clears the client's earlier failures, but not the throttling of its address. */
  succeeded(address: string, login: Login): void {
    if (this.addresses.overForMs(addressKey(address)) === 0) this.addresses.delete(addressKey(address))
    this.pairs.delete(pairKey(address, hashOf(login.account)))
    const pair = knownKey(address, login)
    this.known.delete(pair)
    this.known.add(pair)
    const [eldest] = this.known
    if (this.known.size > MAX_RECORDS && eldest !== undefined) this.known.delete(eldest)
  }
}

interface Failures {
  count: number
  /** The first failure, or the one that reached the limit; ms of the monotonic clock. */
  since: number
  /** Name shown to operators. */
  readonly shown: string | undefined
}

/** Failures by name. Beyond `MAX_RECORDS`, the least recently failed name is evicted. */
class FailureCounts {
  private readonly clock: Clock
  private readonly limits: LoginGuardLimits
  private readonly factor: number
  private readonly records = new Map<string, Failures>()

  constructor(clock: Clock, limits: LoginGuardLimits, factor = 1) {
    this.clock = clock
    this.limits = limits
    this.factor = factor
  }

  /** @returns how long the limit stays reached, ms; 0 if it is not */
  overForMs(name: string): number {
    const record = this.current(name)
    if (record === undefined || record.count < this.limit) return 0
    return record.since + this.limits.lockoutMs - this.clock.monotonic()
  }

  /** Names whose limit is reached. */
  over(): { name: string; shown: string | undefined; failures: number; remainingMs: number }[] {
    return [...this.records].flatMap(([name, { count, shown }]) => {
      const remainingMs = this.overForMs(name)
      return remainingMs > 0 ? [{ name, shown, failures: count, remainingMs }] : []
    })
  }

  /** @returns whether this failure reached the limit */
  add(name: string, shown: string | undefined): boolean {
    const now = this.clock.monotonic()
    const record = this.current(name) ?? { count: 0, since: now, shown }
    record.count += 1
    const isReached = record.count === this.limit
    if (isReached) record.since = now
    this.records.delete(name)
    this.records.set(name, record)
    const [eldest] = this.records.keys()
    if (this.records.size > MAX_RECORDS && eldest !== undefined) this.records.delete(eldest)
    return isReached
  }

  delete(name: string): boolean {
    return this.records.delete(name)
  }

  /** @returns what followed the prefix in each deleted name */
  deleteStartingWith(prefix: string): string[] {
    const names = [...this.records.keys()].filter(name => name.startsWith(prefix))
    for (const name of names) this.records.delete(name)
    return names.map(name => name.slice(prefix.length))
  }

  private get limit(): number {
    return this.limits.failures * this.factor
  }

  private current(name: string): Failures | undefined {
    const record = this.records.get(name)
    if (record === undefined || record.since + this.limits.lockoutMs > this.clock.monotonic()) return record
    this.records.delete(name)
    return undefined
  }
}

function pairKey(address: string, account: string): string {
  return `${addressKey(address)} ${account}`
}

function knownKey(address: string, { account, password }: Login): string {
  return `${addressKey(address)} ${hashOf(`${account}\n${password}`)}`
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64')
}
