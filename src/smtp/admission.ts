/**
 * Who may open a session: how many there are at a time, in all and from one address, and how many came in a minute.
 *
 * Where more than half of all are taken, one address gets no more than half of what is left, so that no few addresses fill
 * them: each one more leaves something for the next, and who has none yet is served before who has many.
 *
 * Called by `service.ts` for each connection, before a word is said. Pure apart from the clock; memory is bounded by the
 * sessions there are and by a fixed number of addresses. Fails: never; a refusal is a value.
 */
import type { Clock } from '../world/time/clock.js'
import { addressKey } from '../world/net/ip-address.js'
import type { SmtpLimits } from './options.js'

export type Refusal = 'sessions' | 'sessions-per-address' | 'connections-per-minute'

/** Of one address, however many there are: a client that opens a second connection beside its first is nobody's attack. */
const LEAST_SHARE = 2
const MINUTE_MS = 60_000
/** Addresses remembered within a minute; beyond that the oldest is forgotten. */
const MOST_ADDRESSES = 65_536

type Bounds = Pick<SmtpLimits, 'sessions' | 'sessionsPerAddress' | 'connectionsPerMinute'>

export class Admission {
  private limits: Bounds
  private readonly clock: Clock
  private readonly open = new Map<string, number>()
  private total = 0
  private minute = -1
  private readonly came = new Map<string, number>()

  constructor(limits: Bounds, clock: Clock) {
    this.limits = limits
    this.clock = clock
  }

  /** From now on; who is in stays. */
  setLimits(limits: Bounds): void {
    this.limits = limits
  }

  /** Counts the connection in, or says why not; what was counted in must be handed to `leave` once. */
  enter(peerAddress: string): Refusal | undefined {
    const key = addressKey(peerAddress)
    if (this.comesTooOften(key)) return 'connections-per-minute'
    if (this.total >= this.limits.sessions) return 'sessions'
    const open = this.open.get(key) ?? 0
    if (open >= this.shareOf()) return 'sessions-per-address'
    this.open.set(key, open + 1)
    this.total += 1
    return undefined
  }

  /** More than half of all sessions are taken: who holds one and does nothing is waited for less. */
  get isUnderPressure(): boolean {
    return this.total * 2 > this.limits.sessions
  }

  /** Sessions that one address may have now. */
  private shareOf(): number {
    const { sessions, sessionsPerAddress } = this.limits
    if (!this.isUnderPressure) return sessionsPerAddress
    return Math.min(sessionsPerAddress, Math.max(LEAST_SHARE, Math.floor((sessions - this.total) / 2)))
  }

  leave(peerAddress: string): void {
    const key = addressKey(peerAddress)
    const open = this.open.get(key) ?? 0
    if (open > 1) this.open.set(key, open - 1)
    else this.open.delete(key)
    this.total -= 1
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
