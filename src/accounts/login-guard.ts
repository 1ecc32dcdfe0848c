/**
 * Limits password guessing, by SMTP and by operators' sign-in, without locking out clients that share an address with the attacker.
 *
 * Failures are counted three ways, each over `lockoutMs`:
 * - per address and account: after `failures`, the pair is refused before its password is checked;
 * - per account over all addresses: after ten times `failures`, it is refused everywhere;
 * - per address over all accounts: after `failures`, further failed logins get a lockout reply. Passwords are still checked, so a
 *   valid one logs in at once.
 * A password that has logged in from an address is never locked out there. An IPv6 /64 counts as one address.
 * In memory and bounded; a restart clears it. Nodes that share a database tell each other by a journal (`login-failure-store.ts`), which is
 * read before a login is checked, unless it is one that has succeeded from the address before. Never rejects.
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

/** What other nodes have to know. */
export interface LoginEvent {
  /** `succeeded` clears the failures of an account at an address, `forgiven` those of the address. */
  readonly kind: 'failed' | 'succeeded' | 'forgiven'
  /** As the client's. */
  readonly address: string
  /** Of the account; undefined if all are meant. */
  readonly accountHash: string | undefined
  /** Name of the account, if it may be shown. */
  readonly account: string | undefined
}

export interface AgedLoginEvent extends LoginEvent {
  readonly ageMs: number
}

/** Between nodes that share a database. */
export interface LoginJournal {
  /** Resolves once others can read it. Never rejects. */
  add(event: LoginEvent): Promise<void>
  /**
   * Reads what other nodes have added until now. Never rejects.
   *
   * @param onEvent called once for each, oldest first; the same function in every call
   */
  read(onEvent: (event: AgedLoginEvent) => void): Promise<void>
}

const FACTOR_EVERYWHERE = 10
const MAX_RECORDS = 50_000
/** Characters of an account's name that are kept. */
const MAX_SHOWN = 254

export class LoginGuard {
  private readonly clock: Clock
  private readonly limits: LoginGuardLimits
  private readonly journal: LoginJournal | undefined
  private readonly pairs: FailureCounts
  private readonly accounts: FailureCounts
  private readonly addresses: FailureCounts
  /** Address and hash of keys that have logged in from there; the least recently used is evicted first. */
  private readonly known = new Set<string>()

  constructor(clock: Clock, limits: LoginGuardLimits, journal?: LoginJournal) {
    this.clock = clock
    this.limits = limits
    this.journal = journal
    this.pairs = new FailureCounts(clock, limits)
    this.accounts = new FailureCounts(clock, limits, FACTOR_EVERYWHERE)
    this.addresses = new FailureCounts(clock, limits)
  }

  get lockoutMs(): number {
    return this.limits.lockoutMs
  }

  /** @returns how long this password stays refused from the address, ms; 0 if it is not */
  async lockedForMs(address: string, login: Login): Promise<number> {
    if (this.known.has(knownKey(address, login))) return 0
    await this.journal?.read(this.learn)
    const account = hashOf(login.account)
    return Math.max(this.pairs.overForMs(pairKey(address, account)), this.accounts.overForMs(account))
  }

  async failed(address: string, login: Login): Promise<FailureEffect> {
    this.known.delete(knownKey(address, login))
    const accountHash = hashOf(login.account)
    const account = login.isAccountSecret ? undefined : login.account.slice(0, MAX_SHOWN)
    const throttledForMs = this.addresses.overForMs(addressKey(address))
    const event: LoginEvent = { kind: 'failed', address, accountHash, account }
    const lockedOut = this.count(event, this.clock.monotonic())
    await this.journal?.add(event)
    return lockedOut ? { throttledForMs, lockedOut } : { throttledForMs }
  }

  /** Clears the failures of an address and of the accounts that failed there. @returns whether there were any */
  async forgive(address: string): Promise<boolean> {
    await this.journal?.read(this.learn)
    const hadAny = this.clearAddress(address)
    if (hadAny)
      await this.journal?.add({ kind: 'forgiven', address, accountHash: undefined, account: undefined })
    return hadAny
  }

  /** Ending last first. */
  async locks(): Promise<LoginLock[]> {
    await this.journal?.read(this.learn)
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
  async succeeded(address: string, login: Login): Promise<void> {
    const pair = knownKey(address, login)
    this.known.delete(pair)
    this.known.add(pair)
    const [eldest] = this.known
    if (this.known.size > MAX_RECORDS && eldest !== undefined) this.known.delete(eldest)
    const accountHash = hashOf(login.account)
    if (!this.clearPair(address, accountHash)) return
    await this.journal?.add({ kind: 'succeeded', address, accountHash, account: undefined })
  }

  private readonly learn = (event: AgedLoginEvent): void => {
    const { kind, address, accountHash = '' } = event
    if (kind === 'failed') this.count(event, this.clock.monotonic() - event.ageMs)
    else if (kind === 'succeeded') this.clearPair(address, accountHash)
    else this.clearAddress(address)
  }

  /** @param at monotonic, ms @returns what this failure locked */
  private count({ address, accountHash = '', account }: LoginEvent, at: number): FailureEffect['lockedOut'] {
    this.addresses.add(addressKey(address), undefined, at)
    const isLockedHere = this.pairs.add(pairKey(address, accountHash), account, at)
    const isLockedEverywhere = this.accounts.add(accountHash, account, at)
    if (isLockedEverywhere) return 'everywhere'
    return isLockedHere ? 'address' : undefined
  }

  private clearPair(address: string, accountHash: string): boolean {
    const isThrottled = this.addresses.overForMs(addressKey(address)) > 0
    const hadAny = !isThrottled && this.addresses.delete(addressKey(address))
    return this.pairs.delete(pairKey(address, accountHash)) || hadAny
  }

  private clearAddress(address: string): boolean {
    const accounts = this.pairs.deleteStartingWith(pairKey(address, ''))
    for (const account of accounts) this.accounts.delete(account)
    return this.addresses.delete(addressKey(address)) || accounts.length > 0
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

  /** @param at when it failed; monotonic, ms @returns whether this failure reached the limit */
  add(name: string, shown: string | undefined, at: number): boolean {
    const record = this.current(name) ?? { count: 0, since: at, shown }
    record.count += 1
    const isReached = record.count === this.limit
    if (isReached) record.since = at
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
