/**
 * Open sessions waiting for their next message.
 *
 * Called by `session-opener.ts`. Knows when a session is too old or too used to be kept; never opens one. Fails: never;
 * a session that died while it waited is just not handed out.
 */
import type { Clock, Timer } from '../../world/time/clock.js'
import { endpointKey, type Endpoint } from '../routing/endpoint.js'
import type { PoolLimits, Timeouts } from '../mta-options.js'
import { leave, type SmtpSession } from './smtp-session.js'

interface Idle {
  readonly key: string
  readonly session: SmtpSession
  readonly expiry: Timer
}

export class ConnectionPool {
  private readonly clock: Clock
  private readonly timeouts: Timeouts
  private readonly limits: PoolLimits
  /** In the order of their return: the first has waited longest. */
  private readonly idle = new Set<Idle>()
  /** The same by endpoint, the one used last at the end. */
  private readonly byEndpoint = new Map<string, Idle[]>()
  private readonly messages = new WeakMap<SmtpSession, number>()
  private readonly leaving = new Set<Promise<void>>()

  constructor(parts: { clock: Clock; timeouts: Timeouts; limits: PoolLimits }) {
    this.clock = parts.clock
    this.timeouts = parts.timeouts
    this.limits = parts.limits
  }

  /** An idle session with this endpoint; the one used last, so that those not needed run out. */
  take(endpoint: Endpoint): SmtpSession | undefined {
    const key = endpointKey(endpoint)
    for (;;) {
      const entry = this.byEndpoint.get(key)?.at(-1)
      if (entry === undefined) return undefined
      this.remove(entry)
      if (entry.session.connection.isInStep) return entry.session
      this.end(entry.session)
    }
  }

  /** Takes a session back after a message; keeps it, or ends it politely. */
  give(session: SmtpSession): void {
    const messages = (this.messages.get(session) ?? 0) + 1
    this.messages.set(session, messages)
    if (!session.connection.isInStep || messages >= this.limits.messagesPerConnection) {
      this.end(session)
      return
    }
    const entry: Idle = {
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
    const [eldest] = this.idle
    if (this.idle.size > this.limits.idleConnections && eldest !== undefined) {
      this.remove(eldest)
      this.end(eldest.session)
    }
  }

  /** Ends every idle session; resolves when each has said QUIT or run into its time limit. */
  async close(): Promise<void> {
    for (const entry of [...this.idle]) {
      this.remove(entry)
      this.end(entry.session)
    }
    await Promise.all(this.leaving)
  }

  private remove(entry: Idle): void {
    entry.expiry.cancel()
    this.idle.delete(entry)
    const entries = this.byEndpoint.get(entry.key)
    entries?.splice(entries.lastIndexOf(entry), 1)
    if (entries?.length === 0) this.byEndpoint.delete(entry.key)
  }

  private end(session: SmtpSession): void {
    const left = leave(session.connection, this.timeouts).finally(() => this.leaving.delete(left))
    this.leaving.add(left)
  }
}
