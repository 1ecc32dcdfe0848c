/**
 * Connection admission for a listener: limits on all connections, per address and per minute.
 *
 * Once more than half of the slots are taken, one address gets at most half of the rest. When all are taken, a newcomer from a network
 * with fewer connections evicts one from the network with the most (IPv4 /24, IPv6 /48), silent ones first, so no few addresses or
 * networks can lock out everyone else. Memory is bounded by the number of connections and MAX_ADDRESSES. Never throws.
 */
import type { Clock } from '../time/clock.js'
import { addressKey, networkOf } from './ip-address.js'

export type Refusal = 'sessions' | 'sessions-per-address' | 'connections-per-minute'

export interface AdmissionLimits {
  readonly sessions: number
  /** Per IPv4 address or IPv6 /64. */
  readonly sessionsPerAddress: number
  /** New connections per minute and address; 0 = unlimited. */
  readonly connectionsPerMinute: number
}

export interface AdmittedConnection {
  /** `working`: the server owes it a response, or it is authenticated; `sending`: in the middle of a request or message. */
  readonly activity: 'working' | 'sending' | 'silent'
  /** Start of the current activity, monotonic ms. */
  readonly activeSince: number
  /** Closes the connection; its slot is already free. */
  evict(): void
}

interface Origin {
  readonly address: string
  readonly network: string
  readonly isExempt: boolean
}

interface Entry extends Origin {
  readonly connection: AdmittedConnection
}

/** Minimum per address even under pressure: a second connection is no attack. */
const MIN_SHARE = 2
const MINUTE_MS = 60_000
/** Addresses counted per minute; beyond that the oldest is forgotten. */
const MAX_ADDRESSES = 65_536
/** After this time a silent connection is evicted even if the newcomer's network has only one connection less. */
const SILENT_MS = 5_000

export class Admission {
  private limits: AdmissionLimits
  private readonly clock: Clock
  private readonly isExempt: (address: string) => boolean
  private readonly entries = new Map<AdmittedConnection, Entry>()
  private readonly perAddress = new Map<string, number>()
  private readonly perNetwork = new Map<string, number>()
  private minute = -1
  private readonly arrivals = new Map<string, number>()

  /** @param isExempt reverse proxies, which serve many clients from one address and are never evicted */
  constructor(limits: AdmissionLimits, clock: Clock, isExempt: (address: string) => boolean = () => false) {
    this.limits = limits
    this.clock = clock
    this.isExempt = isExempt
  }

  /** Existing connections stay. */
  setLimits(limits: AdmissionLimits): void {
    this.limits = limits
  }

  get total(): number {
    return this.entries.size
  }

  /** More than half of the slots are taken. */
  get isUnderPressure(): boolean {
    return this.total * 2 > this.limits.sessions
  }

  /** Connections that may be closed under pressure. */
  *evictable(): Iterable<AdmittedConnection> {
    for (const { connection, isExempt } of this.entries.values()) if (!isExempt) yield connection
  }

  /** Evicts a connection if necessary. @returns why the newcomer is refused, or undefined */
  check(peerAddress: string): Refusal | undefined {
    const newcomer = this.originOf(peerAddress)
    if (this.exceedsRate(newcomer.address)) return 'connections-per-minute'
    const isOverShare = (this.perAddress.get(newcomer.address) ?? 0) >= this.shareOf(newcomer)
    if (this.total < this.limits.sessions) return isOverShare ? 'sessions-per-address' : undefined
    return isOverShare || !this.makeRoomFor(newcomer) ? 'sessions' : undefined
  }

  admit(peerAddress: string, connection: AdmittedConnection): void {
    const origin = this.originOf(peerAddress)
    this.entries.set(connection, { ...origin, connection })
    add(this.perAddress, origin.address, 1)
    add(this.perNetwork, origin.network, 1)
  }

  /** Idempotent; does nothing for refused or evicted connections. */
  leave(connection: AdmittedConnection): void {
    const entry = this.entries.get(connection)
    if (!entry) return
    this.entries.delete(connection)
    add(this.perAddress, entry.address, -1)
    add(this.perNetwork, entry.network, -1)
  }

  private originOf(peerAddress: string): Origin {
    const address = addressKey(peerAddress)
    return { address, network: networkOf(address), isExempt: this.isExempt(peerAddress) }
  }

  /** Slots one address may hold now. */
  private shareOf({ isExempt }: Origin): number {
    const { sessions, sessionsPerAddress } = this.limits
    if (!this.isUnderPressure || isExempt) return sessionsPerAddress
    return Math.min(sessionsPerAddress, Math.max(MIN_SHARE, Math.floor((sessions - this.total) / 2)))
  }

  private makeRoomFor(newcomer: Origin): boolean {
    let victim: Entry | undefined
    for (const entry of this.entries.values())
      if (this.isEvictableFor(entry, newcomer) && (!victim || this.isWorse(entry, victim))) victim = entry
    if (!victim) return false
    this.leave(victim.connection)
    victim.connection.evict()
    return true
  }

  /** Compares networks, or addresses if both are in the same network. */
  private isEvictableFor({ connection, address, network, isExempt }: Entry, newcomer: Origin): boolean {
    if (isExempt || connection.activity === 'working') return false
    const isSame = network === newcomer.network
    const held = isSame ? this.perAddress.get(address) : this.perNetwork.get(network)
    const theirs = isSame ? this.perAddress.get(newcomer.address) : this.perNetwork.get(newcomer.network)
    const more = (held ?? 0) - (newcomer.isExempt ? 0 : (theirs ?? 0))
    const isLongSilent =
      connection.activity === 'silent' && this.clock.monotonic() - connection.activeSince >= SILENT_MS
    return more >= (isLongSilent ? 1 : 2)
  }

  private isWorse(one: Entry, other: Entry): boolean {
    const byNetwork = (this.perNetwork.get(one.network) ?? 0) - (this.perNetwork.get(other.network) ?? 0)
    if (byNetwork !== 0) return byNetwork > 0
    const byAddress = (this.perAddress.get(one.address) ?? 0) - (this.perAddress.get(other.address) ?? 0)
    if (byAddress !== 0) return byAddress > 0
    if (one.connection.activity !== other.connection.activity) return one.connection.activity === 'silent'
    return one.connection.activeSince < other.connection.activeSince
  }

  private exceedsRate(key: string): boolean {
    const { connectionsPerMinute } = this.limits
    if (connectionsPerMinute === 0) return false
    const minute = Math.floor(this.clock.monotonic() / MINUTE_MS)
    if (minute !== this.minute) {
      this.minute = minute
      this.arrivals.clear()
    }
    const count = (this.arrivals.get(key) ?? 0) + 1
    if (count > connectionsPerMinute) return true
    if (this.arrivals.size >= MAX_ADDRESSES)
      for (const oldest of this.arrivals.keys()) {
        this.arrivals.delete(oldest)
        break
      }
    this.arrivals.set(key, count)
    return false
  }
}

function add(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}
