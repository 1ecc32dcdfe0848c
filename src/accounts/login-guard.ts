/**
 * Limits password guessing, by SMTP and by operators' sign-in, without locking out clients that share an address with the attacker.
 *
 * Failures are counted three ways, each over `lockoutMs`:
 * - per address and account: after `failures`, the pair is refused before its password is checked;
 * - per account over all addresses: after ten times `failures`, it is refused everywhere;
 * - per address over all accounts: after `failures`, further failed logins get a lockout reply. Passwords are still checked, so a
 *   valid one logs in at once.
 * A password that has logged in from an address is never locked out there. An IPv6 /64 counts as one address.
 *
 * An attempt counts as failed from the moment it is reserved, before anything is checked, until it is known to be right. So of any number of
 * attempts at once no more are checked than may fail.
 * In memory and bounded; a restart clears it. Nodes that share a database tell each other by a journal (`login-failure-store.ts`): a
 * reservation is stored there before the others' are read, so of attempts at several nodes each sees those before it. Of those that come
 * together at several nodes, and are more than may fail, all may be refused. Never rejects.
 */
import { createHash } from 'node:crypto'
import { addressKey } from '../world/net/ip-address.js'
import type { Clock } from '../world/time/clock.js'

/** Credentials of one attempt. Only a hash of the password is kept. */
export interface Login {
  /** The part a guesser holds fixed: an email address, or the start of an API key. */
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

/** An attempt that may be checked. Exactly one of its methods is called, once. */
export interface Attempt {
  /** Leaves it counted. */
  failed(): Promise<FailureEffect>
  /** Clears the client's earlier failures, but not the throttling of its address. */
  succeeded(): Promise<void>
  /** Nothing was checked, so nothing was learnt: uncounts it. */
  release(): Promise<void>
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

/** Shared with the other nodes. */
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
  /** Resolves once others can read it. Never rejects. @returns its number, for `remove`; undefined if it was not stored */
  add(event: LoginEvent): Promise<number | undefined>
  /** For those that have not read it yet. Never rejects. */
  remove(seq: number): Promise<void>
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
  /** Attempts that are being checked, by account. */
  private readonly pending = new Map<string, Pending>()

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

  /**
   * Waits while attempts on the account that are being checked leave no room for another one.
   *
   * @returns the attempt, or how long this password stays refused from the address, ms
   */
  async reserve(address: string, login: Login): Promise<Attempt | number> {
    const accountHash = hashOf(login.account)
    for (let isRead = this.journal === undefined; ;) {
      if (this.known.has(knownKey(address, login))) return this.knownAttempt(address, login)
      const refusedMs = this.lockedForMs(address, accountHash)
      if (refusedMs === 0) break
      // Another node may have unlocked it.
      if (!isRead) {
        await this.journal?.read(this.learn)
        isRead = true
        continue
      }
      const pending = this.pending.get(accountHash)
      if (!pending) return refusedMs
      await pending.next
    }
    const throttledForMs = this.addresses.overForMs(addressKey(address))
    const event = eventOf('failed', address, login)
    const lockedOut = this.count(event, this.clock.monotonic())
    const effect = lockedOut ? { throttledForMs, lockedOut } : { throttledForMs }
    const settle = this.beginPending(accountHash)
    // Random secrets cannot be guessed, so nodes need not agree on them before they are checked.
    if (!this.journal || login.isAccountSecret) return this.attempt(address, login, { event, effect, settle })
    const seq = await this.journal.add(event)
    await this.journal.read(this.learn)
    if (!this.isExceeded(address, accountHash))
      return this.attempt(address, login, { event, effect, settle, seq, isShared: true })
    await this.uncount(event, seq)
    settle()
    return Math.max(1, this.lockedForMs(address, accountHash))
  }

  private attempt(address: string, login: Login, reserved: Reserved): Attempt {
    const { event, effect, settle, seq, isShared = false } = reserved
    return {
      failed: async () => {
        settle()
        if (!isShared) await this.journal?.add(event)
        return effect
      },
      succeeded: async () => {
        this.succeeded(address, login)
        settle()
        if (isShared) await this.journal?.add({ ...event, kind: 'succeeded', account: undefined })
      },
      release: async () => {
        await this.uncount(event, seq)
        settle()
      },
    }
  }

  /** Not counted unless it fails. */
  private knownAttempt(address: string, login: Login): Attempt {
    return {
      failed: async () => {
        this.known.delete(knownKey(address, login))
        const throttledForMs = this.addresses.overForMs(addressKey(address))
        const event = eventOf('failed', address, login)
        const lockedOut = this.count(event, this.clock.monotonic())
        await this.journal?.add(event)
        return lockedOut ? { throttledForMs, lockedOut } : { throttledForMs }
      },
      succeeded: async () => this.know(address, login),
      release: async () => {},
    }
  }

  /** @returns ends it */
  private beginPending(accountHash: string): () => void {
    const pending = this.pending.get(accountHash) ?? newPending()
    this.pending.set(accountHash, pending)
    pending.count += 1
    return () => {
      pending.count -= 1
      if (pending.count === 0) this.pending.delete(accountHash)
      const { wake } = pending
      Object.assign(pending, newWait())
      wake()
    }
  }

  private lockedForMs(address: string, accountHash: string): number {
    return Math.max(this.pairs.overForMs(pairKey(address, accountHash)), this.accounts.overForMs(accountHash))
  }

  /** Others have counted so many meanwhile that an attempt counted here is one too many. */
  private isExceeded(address: string, accountHash: string): boolean {
    return this.pairs.isExceeded(pairKey(address, accountHash)) || this.accounts.isExceeded(accountHash)
  }

  private async uncount({ address, accountHash = '' }: LoginEvent, seq: number | undefined): Promise<void> {
    this.addresses.subtract(addressKey(address))
    this.pairs.subtract(pairKey(address, accountHash))
    this.accounts.subtract(accountHash)
    if (seq !== undefined) await this.journal?.remove(seq)
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

  private succeeded(address: string, login: Login): void {
    this.know(address, login)
    const accountHash = hashOf(login.account)
    this.clearPair(address, accountHash)
    this.accounts.subtract(accountHash)
  }

  private know(address: string, login: Login): void {
    const pair = knownKey(address, login)
    this.known.delete(pair)
    this.known.add(pair)
    const [eldest] = this.known
    if (this.known.size > MAX_RECORDS && eldest !== undefined) this.known.delete(eldest)
  }

  private readonly learn = (event: AgedLoginEvent): void => {
    const { kind, address, accountHash = '' } = event
    if (kind === 'failed') this.count(event, this.clock.monotonic() - event.ageMs)
    else if (kind === 'succeeded') {
      this.clearPair(address, accountHash)
      this.accounts.subtract(accountHash)
    } else this.clearAddress(address)
  }

  /** @param at monotonic, ms @returns what this failure locked */
  private count({ address, accountHash = '', account }: LoginEvent, at: number): FailureEffect['lockedOut'] {
    this.addresses.add(addressKey(address), undefined, at)
    const isLockedHere = this.pairs.add(pairKey(address, accountHash), account, at)
    const isLockedEverywhere = this.accounts.add(accountHash, account, at)
    if (isLockedEverywhere) return 'everywhere'
    return isLockedHere ? 'address' : undefined
  }

  /** After an attempt that succeeded, which is counted until now. */
  private clearPair(address: string, accountHash: string): void {
    // The limit may be reached by the attempt itself.
    this.addresses.subtract(addressKey(address))
    if (this.addresses.overForMs(addressKey(address)) === 0) this.addresses.delete(addressKey(address))
    this.pairs.delete(pairKey(address, accountHash))
  }

  private clearAddress(address: string): boolean {
    const accounts = this.pairs.deleteStartingWith(pairKey(address, ''))
    for (const account of accounts) this.accounts.delete(account)
    return this.addresses.delete(addressKey(address)) || accounts.length > 0
  }
}

interface Reserved {
  readonly event: LoginEvent
  readonly effect: FailureEffect
  readonly settle: () => void
  /** Of the journal. */
  readonly seq?: number | undefined
  /** Other nodes know of it. */
  readonly isShared?: true
}

interface Wait {
  /** Resolves when the next attempt ends. */
  next: Promise<void>
  wake: () => void
}

interface Pending extends Wait {
  count: number
}

function newPending(): Pending {
  return { count: 0, ...newWait() }
}

function newWait(): Wait {
  let wake = () => {}
  const next = new Promise<void>(resolve => (wake = resolve))
  return { next, wake }
}

function eventOf(kind: LoginEvent['kind'], address: string, login: Login): LoginEvent {
  const account = login.isAccountSecret ? undefined : login.account.slice(0, MAX_SHOWN)
  return { kind, address, accountHash: hashOf(login.account), account }
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

  /** Whether more than the limit were counted. */
  isExceeded(name: string): boolean {
    return (this.current(name)?.count ?? 0) > this.limit
  }

  /** Uncounts one. */
  subtract(name: string): void {
    const record = this.current(name)
    if (!record) return
    record.count -= 1
    if (record.count <= 0) this.records.delete(name)
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
