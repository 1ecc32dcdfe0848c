/**
 * A session with an endpoint, however it comes about: taken from the pool, dialled, or dialled again in clear because the
 * host's STARTTLS is broken.
 *
 * Called by `smtp-agent.ts`. Never chooses the endpoint. Standards: RFC 3207, RFC 7435 (opportunistic security: a broken
 * STARTTLS must not be worse than none). Fails: never rejects; each dialling that failed is told.
 */
import { given } from '../../core/given.js'
import type { TlsFacts } from '../../mail/outcome.js'
import type { Clock } from '../../world/time/clock.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { Random } from '../../world/random.js'
import { ConnectionPool } from './connection-pool.js'
import type { Endpoint } from '../routing/endpoint.js'
import type { PoolLimits } from '../mta-options.js'
import type { SmtpEnd } from '../smtp-end.js'
import {
  openSession,
  type Opening,
  type OpenOptions,
  type SessionParts,
  type SmtpSession,
} from './smtp-session.js'

export interface OpenerParts extends SessionParts {
  readonly random: Random
  /** Addresses to dial from; one of the right family is drawn each time. Empty: the system's choice. */
  readonly sourceAddresses: readonly string[]
  readonly pool: PoolLimits
}

/** When opening is given up. */
export type OpeningLimits = Pick<OpenOptions, 'deadline' | 'signal'>

/** One dialling that led to no session. */
export interface FailedOpening {
  readonly end: SmtpEnd
  readonly tls?: TlsFacts
  readonly durationMs: number
}

export interface OpenedSession {
  readonly session: SmtpSession | undefined
  /** Whether it carried a message before. */
  readonly reused: boolean
  /** In order; not empty where there is no session. */
  readonly failures: readonly FailedOpening[]
}

/** How long a host whose STARTTLS broke is spoken to in clear without another try. */
const BROKEN_TLS_MS = 3_600_000
const MOST_BROKEN_HOSTS = 1_000

export class SessionOpener {
  private readonly parts: OpenerParts
  private readonly pool: ConnectionPool
  private readonly brokenTls: BrokenTlsMemory

  constructor(parts: OpenerParts) {
    this.parts = parts
    this.pool = new ConnectionPool({ clock: parts.clock, timeouts: parts.timeouts, limits: parts.pool })
    this.brokenTls = new BrokenTlsMemory(parts.clock)
  }

  async open(endpoint: Endpoint, limits: OpeningLimits): Promise<OpenedSession> {
    const idle = this.pool.take(endpoint)
    return idle === undefined ? this.dial(endpoint, limits) : { session: idle, reused: true, failures: [] }
  }

  /** A new connection, whatever the pool has. */
  async dial(endpoint: Endpoint, limits: OpeningLimits): Promise<OpenedSession> {
    const failures: FailedOpening[] = []
    const inClear = this.brokenTls.has(endpoint)
    const opening = await this.dialOnce(endpoint, inClear, limits, failures)
    if ('session' in opening) return { session: opening.session, reused: false, failures }
    if (inClear || !isBrokenStartTls(endpoint, opening.end))
      return { session: undefined, reused: false, failures }
    this.brokenTls.add(endpoint)
    const again = await this.dialOnce(endpoint, true, limits, failures)
    return { session: 'session' in again ? again.session : undefined, reused: false, failures }
  }

  /** After a message: the session waits for the next one, or ends. */
  give(session: SmtpSession): void {
    this.pool.give(session)
  }

  close(): Promise<void> {
    return this.pool.close()
  }

  private async dialOnce(
    endpoint: Endpoint,
    inClear: boolean,
    limits: OpeningLimits,
    failures: FailedOpening[],
  ): Promise<Opening> {
    const { clock } = this.parts
    const startedAt = clock.monotonic()
    const localAddress = this.sourceFor(endpoint)
    const opening = await openSession(this.parts, endpoint, {
      inClear,
      ...limits,
      ...given({ localAddress }),
    })
    if ('end' in opening) failures.push({ ...opening, durationMs: clock.monotonic() - startedAt })
    return opening
  }

  private sourceFor({ address, sources = this.parts.sourceAddresses }: Endpoint): string | undefined {
    const usable = sources.filter(source => ipVersion(source) === ipVersion(address))
    return usable[Math.floor(this.parts.random.fraction() * usable.length)]
  }
}

/** A handshake that fails, or a connection that ends right after it; a server that refuses with a reply is not broken. */
function isBrokenStartTls(endpoint: Endpoint, { stage, broken }: SmtpEnd): boolean {
  if (endpoint.tls !== 'opportunistic' || endpoint.implicitTls || stage !== 'starttls') return false
  return broken !== undefined && broken.kind !== 'aborted'
}

/** Hosts whose STARTTLS broke lately, in bounded memory. */
class BrokenTlsMemory {
  private readonly clock: Clock
  /** Endpoint and when to try TLS again, on the monotonic clock; oldest first. */
  private readonly until = new Map<string, number>()

  constructor(clock: Clock) {
    this.clock = clock
  }

  has(endpoint: Endpoint): boolean {
    const until = this.until.get(hostKey(endpoint))
    return until !== undefined && until > this.clock.monotonic()
  }

  add(endpoint: Endpoint): void {
    this.until.delete(hostKey(endpoint))
    this.until.set(hostKey(endpoint), this.clock.monotonic() + BROKEN_TLS_MS)
    const oldest = this.until.size > MOST_BROKEN_HOSTS ? this.until.keys().next().value : undefined
    if (oldest !== undefined) this.until.delete(oldest)
  }
}

function hostKey({ host, port }: Endpoint): string {
  return `${host} ${port}`
}
