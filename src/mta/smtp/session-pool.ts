/**
 * Provides SMTP sessions: reused from the pool, newly dialled, or redialled without TLS because the host's STARTTLS is broken.
 *
 * Never rejects; every failed connection is reported. The endpoint is the caller's choice.
 * Standards: RFC 3207, RFC 7435 (opportunistic security: broken STARTTLS must not be worse than none).
 */
import { given } from '../../core/given.js'
import type { TlsFacts } from '../../mail/outcome.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { Random } from '../../world/random.js'
import { type Endpoint, endpointKey } from '../routing/endpoint.js'
import type { PoolLimits, Timeouts } from '../mta-options.js'
import type { SmtpResult } from '../smtp-result.js'
import {
  type OpenOptions,
  type OpenResult,
  openSession,
  quit,
  type SessionParts,
  type SmtpSession,
} from './smtp-session.js'

export interface SessionPoolParts extends SessionParts {
  readonly random: Random
  /** Source addresses; one of the right family is picked at random. Empty: chosen by the system. */
  readonly sourceAddresses: readonly string[]
  readonly pool: PoolLimits
}

type OpenLimits = Pick<OpenOptions, 'deadline' | 'signal'>

interface FailedOpen {
  readonly result: SmtpResult
  readonly tls?: TlsFacts
  readonly durationMs: number
}

export interface OpenedSession {
  readonly session: SmtpSession | undefined
  /** Whether the session has carried a message before. */
  readonly reused: boolean
  /** In order; not empty if there is no session. */
  readonly failures: readonly FailedOpen[]
}

/** How long STARTTLS is skipped at a host after it broke. */
const BROKEN_TLS_MS = 3_600_000
const MAX_BROKEN_HOSTS = 1_000

export class SessionPool {
  private readonly parts: SessionPoolParts
  private readonly pool: IdleSessions
  private readonly brokenTls: BrokenTlsMemory

  constructor(parts: SessionPoolParts) {
    this.parts = parts
    this.pool = new IdleSessions({ clock: parts.clock, timeouts: parts.timeouts, limits: parts.pool })
    this.brokenTls = new BrokenTlsMemory(parts.clock)
  }

  async open(endpoint: Endpoint, limits: OpenLimits): Promise<OpenedSession> {
    const idle = this.pool.acquire(endpoint)
    return idle === undefined ? this.dial(endpoint, limits) : { session: idle, reused: true, failures: [] }
  }

  async dial(endpoint: Endpoint, limits: OpenLimits): Promise<OpenedSession> {
    const failures: FailedOpen[] = []
    const plaintext = this.brokenTls.has(endpoint)
    const opening = await this.dialOnce(endpoint, plaintext, limits, failures)
    if ('session' in opening) return { session: opening.session, reused: false, failures }
    if (plaintext || !isBrokenStartTls(endpoint, opening.result))
      return { session: undefined, reused: false, failures }
    this.brokenTls.add(endpoint)
    const again = await this.dialOnce(endpoint, true, limits, failures)
    return { session: 'session' in again ? again.session : undefined, reused: false, failures }
  }

  release(session: SmtpSession): void {
    this.pool.release(session)
  }

  /** Ends a session that must carry no further message. */
  discard(session: SmtpSession): void {
    this.pool.end(session)
  }

  close(): Promise<void> {
    return this.pool.close()
  }

  private async dialOnce(
    endpoint: Endpoint,
    plaintext: boolean,
    limits: OpenLimits,
    failures: FailedOpen[],
  ): Promise<OpenResult> {
    const { clock } = this.parts
    const startedAt = clock.monotonic()
    const localAddress = this.pickSourceAddress(endpoint)
    const opening = await openSession(this.parts, endpoint, {
      skipStartTls: plaintext,
      ...limits,
      ...given({ localAddress }),
    })
    if ('result' in opening) failures.push({ ...opening, durationMs: clock.monotonic() - startedAt })
    return opening
  }

  private pickSourceAddress({ address, sources = this.parts.sourceAddresses }: Endpoint): string | undefined {
    const usable = sources.filter(source => ipVersion(source) === ipVersion(address))
    return usable[Math.floor(this.parts.random.fraction() * usable.length)]
  }
}

/** The handshake failed, or the connection dropped right after it. A server that refuses STARTTLS with a reply is not broken. */
function isBrokenStartTls(endpoint: Endpoint, { stage, failure }: SmtpResult): boolean {
  if (endpoint.tls !== 'opportunistic' || endpoint.implicitTls || stage !== 'starttls') return false
  return failure !== undefined && failure.kind !== 'aborted'
}

/** Hosts whose STARTTLS broke recently, bounded. */
class BrokenTlsMemory {
  private readonly clock: Clock
  /** When to try TLS again, monotonic; oldest first. */
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
    const oldest = this.until.size > MAX_BROKEN_HOSTS ? this.until.keys().next().value : undefined
    if (oldest !== undefined) this.until.delete(oldest)
  }
}

function hostKey({ host, port }: Endpoint): string {
  return `${host} ${port}`
}

interface IdleSession {
  readonly key: string
  readonly session: SmtpSession
  readonly expiry: Timer
}

class IdleSessions {
  private readonly clock: Clock
  private readonly timeouts: Timeouts
  private readonly limits: PoolLimits
  /** Oldest first. */
  private readonly idle = new Set<IdleSession>()
  /** The same sessions by endpoint, oldest first. */
  private readonly byEndpoint = new Map<string, IdleSession[]>()
  private readonly messages = new WeakMap<SmtpSession, number>()
  private readonly closing = new Set<Promise<void>>()

  constructor(parts: { clock: Clock; timeouts: Timeouts; limits: PoolLimits }) {
    this.clock = parts.clock
    this.timeouts = parts.timeouts
    this.limits = parts.limits
  }

  /** Reuses the most recently used session, so that surplus ones expire. */
  acquire(endpoint: Endpoint): SmtpSession | undefined {
    const key = endpointKey(endpoint)
    for (;;) {
      const entry = this.byEndpoint.get(key)?.at(-1)
      if (entry === undefined) return undefined
      this.remove(entry)
      if (entry.session.connection.isSynchronized) return entry.session
      this.end(entry.session)
    }
  }

  release(session: SmtpSession): void {
    const messages = (this.messages.get(session) ?? 0) + 1
    this.messages.set(session, messages)
    if (!session.connection.isSynchronized || messages >= this.limits.messagesPerConnection) {
      this.end(session)
      return
    }
    const entry: IdleSession = {
      key: endpointKey(session.endpoint),
      session,
      expiry: this.clock.after(this.limits.idleMs, () => {
        this.remove(entry)
        this.end(session)
      }),
    }
    this.idle.add(entry)
    const others = this.byEndpoint.get(entry.key)
    if (others) others.push(entry)
    else this.byEndpoint.set(entry.key, [entry])
    const [oldest] = this.idle
    if (this.idle.size > this.limits.idleConnections && oldest !== undefined) {
      this.remove(oldest)
      this.end(oldest.session)
    }
  }

  /** Closes all idle sessions; resolves once each has sent QUIT or timed out. */
  async close(): Promise<void> {
    for (const entry of [...this.idle]) {
      this.remove(entry)
      this.end(entry.session)
    }
    await Promise.all(this.closing)
  }

  private remove(entry: IdleSession): void {
    entry.expiry.cancel()
    this.idle.delete(entry)
    const entries = this.byEndpoint.get(entry.key)
    entries?.splice(entries.lastIndexOf(entry), 1)
    if (entries?.length === 0) this.byEndpoint.delete(entry.key)
  }

  end(session: SmtpSession): void {
    const left = quit(session.connection, this.timeouts).finally(() => this.closing.delete(left))
    this.closing.add(left)
  }
}
