/**
 * Which connections a listener admits: how many at a time, from one address, and in a minute.
 *
 * Once more than half of all places are taken, one address gets at most half of the rest. When all are taken, a newcomer from a
 * network that holds fewer displaces one of the network that holds most (/24 of IPv4, /48 of IPv6), silent ones first, so that no few
 * addresses or networks shut anybody out.
 *
 * Used by the SMTP service and by `http-connections.ts`, for each connection before a word is said. Memory: what is admitted, and a fixed
 * number of addresses. Never throws; a refusal is a value.
 */
import type { Clock } from '../time/clock.js'
import { addressKey, networkOf } from './ip-address.js'

export type Refusal = 'sessions' | 'sessions-per-address' | 'connections-per-minute'

export interface AdmissionLimits {
  readonly sessions: number
  /** From one IPv4 address or one /64 of IPv6. */
  readonly sessionsPerAddress: number
  /** New ones in a minute from one such address; 0 = any number. */
  readonly connectionsPerMinute: number
}

/** An admitted connection. */
export interface AdmittedConnection {
  /** `working`: the server owes it something, or it has proved itself; `sending`: in the middle of a request or message. */
  readonly activity: 'working' | 'sending' | 'silent'
  /** Since when it is that, on the monotonic clock. */
  readonly activeSince: number
  /** Closes it; its place is free already. */
  evict(): void
}

interface Origin {
  readonly address: string
  readonly network: string
  readonly isExempt: boolean
}

interface Entry extends Origin {
  readonly guest: AdmittedConnection
}

/** Of one address, however many there are: a client that opens a second connection beside its first is nobody's attack. */
const LEAST_SHARE = 2
const MINUTE_MS = 60_000
/** Addresses remembered within a minute; beyond that the oldest is forgotten. */
const MOST_ADDRESSES = 65_536
/** A connection silent for this long gives way even to a network that holds only one less. */
const SILENT_MS = 5_000

export class Admission {
  private limits: AdmissionLimits
  private readonly clock: Clock
  private readonly isExempt: (address: string) => boolean
  private readonly entries = new Map<AdmittedConnection, Entry>()
  private readonly perAddress = new Map<string, number>()
  private readonly perNetwork = new Map<string, number>()
  private minute = -1
  private readonly came = new Map<string, number>()

  /** @param isExempt reverse proxies: many clients behind one address, which is never displaced */
  constructor(limits: AdmissionLimits, clock: Clock, isExempt: (address: string) => boolean = () => false) {
    this.limits = limits
    this.clock = clock
    this.isExempt = isExempt
  }

  /** From now on; who is in stays. */
  setLimits(limits: AdmissionLimits): void {
    this.limits = limits
  }

  get total(): number {
    return this.entries.size
  }

  /** More than half of all places are taken: who holds one and does nothing is waited for less. */
  get isUnderPressure(): boolean {
    return this.total * 2 > this.limits.sessions
  }

  /** Those that may be cut under pressure. */
  *guests(): Iterable<AdmittedConnection> {
    for (const { guest, isExempt } of this.entries.values()) if (!isExempt) yield guest
  }

  /** Makes room for a connection if necessary. @returns why it is refused, or undefined */
  check(peerAddress: string): Refusal | undefined {
    const newcomer = this.originOf(peerAddress)
    if (this.comesTooOften(newcomer.address)) return 'connections-per-minute'
    const isOverShare = (this.perAddress.get(newcomer.address) ?? 0) >= this.shareOf(newcomer)
    if (this.total < this.limits.sessions) return isOverShare ? 'sessions-per-address' : undefined
    return isOverShare || !this.makeRoomFor(newcomer) ? 'sessions' : undefined
  }

  /** Counts in what `check` has let pass, until `leave`. */
  admit(peerAddress: string, guest: AdmittedConnection): void {
    const origin = this.originOf(peerAddress)
    this.entries.set(guest, { ...origin, guest })
    add(this.perAddress, origin.address, 1)
    add(this.perNetwork, origin.network, 1)
  }

  /** Of one that was refused or has given way nothing is left. */
  leave(guest: AdmittedConnection): void {
    const entry = this.entries.get(guest)
    if (!entry) return
    this.entries.delete(guest)
    add(this.perAddress, entry.address, -1)
    add(this.perNetwork, entry.network, -1)
  }

  private originOf(peerAddress: string): Origin {
    const address = addressKey(peerAddress)
    return { address, network: networkOf(address), isExempt: this.isExempt(peerAddress) }
  }

  /** Places that one address may have now. */
  private shareOf({ isExempt }: Origin): number {
    const { sessions, sessionsPerAddress } = this.limits
    if (!this.isUnderPressure || isExempt) return sessionsPerAddress
    return Math.min(sessionsPerAddress, Math.max(LEAST_SHARE, Math.floor((sessions - this.total) / 2)))
  }

  private makeRoomFor(newcomer: Origin): boolean {
    let victim: Entry | undefined
    for (const entry of this.entries.values())
      if (this.givesWayTo(entry, newcomer) && (!victim || this.isWorse(entry, victim))) victim = entry
    if (!victim) return false
    this.leave(victim.guest)
    victim.guest.evict()
    return true
  }

  /** Networks are compared with each other, and within one its addresses. */
  private givesWayTo({ guest, address, network, isExempt }: Entry, newcomer: Origin): boolean {
    if (isExempt || guest.activity === 'working') return false
    const isSame = network === newcomer.network
    const held = isSame ? this.perAddress.get(address) : this.perNetwork.get(network)
    const theirs = isSame ? this.perAddress.get(newcomer.address) : this.perNetwork.get(newcomer.network)
    const more = (held ?? 0) - (newcomer.isExempt ? 0 : (theirs ?? 0))
    const isLongSilent =
      guest.activity === 'silent' && this.clock.monotonic() - guest.activeSince >= SILENT_MS
    return more >= (isLongSilent ? 1 : 2)
  }

  private isWorse(one: Entry, other: Entry): boolean {
    const byNetwork = (this.perNetwork.get(one.network) ?? 0) - (this.perNetwork.get(other.network) ?? 0)
    if (byNetwork !== 0) return byNetwork > 0
    const byAddress = (this.perAddress.get(one.address) ?? 0) - (this.perAddress.get(other.address) ?? 0)
    if (byAddress !== 0) return byAddress > 0
    if (one.guest.activity !== other.guest.activity) return one.guest.activity === 'silent'
    return one.guest.activeSince < other.guest.activeSince
  }

  private comesTooOften(key: string): boolean {
    const { connectionsPerMinute } = this.limits
    if (connectionsPerMinute === 0) return false
    const minute = Math.floor(this.clock.monotonic() / MINUTE_MS)
    if (minute !== this.minute) {
      this.minute = minute
      this.came.clear()
    }
    const count = (this.came.get(key) ?? 0) + 1
    if (count > connectionsPerMinute) return true
    if (this.came.size >= MOST_ADDRESSES)
      for (const oldest of this.came.keys()) {
        this.came.delete(oldest)
        break
      }
    this.came.set(key, count)
    return false
  }
}

function add(counts: Map<string, number>, key: string, change: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + change
  if (count > 0) counts.set(key, count)
  else counts.delete(key)
}
