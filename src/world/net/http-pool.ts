/**
 * A pool of HTTP connections, bounded in number, idle time and age.
 *
 * Pooled connections were dialled at an address checked by the egress policy. Their age is limited so that DNS changes take effect.
 * Connections to hosts named by the operator are never pooled, because they may lead where other requests must not go.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import type { Clock } from '../time/clock.js'

/** Idle connections per host; opening one costs as much as a request. */
const IDLE_PER_HOST = 64
const IDLE_IN_TOTAL = 512
const IDLE_MS = 10_000
const MAX_AGE_MS = 60_000

/** Whether a connection is kept after its request. */
type Keeps = (socket: Duplex) => boolean

export class HttpPool {
  readonly plain: HttpAgent
  readonly secure: HttpsAgent
  private readonly clock: Clock
  private readonly idle = new Set<Duplex>()
  private readonly since = new WeakMap<Duplex, number>()

  constructor(clock: Clock) {
    this.clock = clock
    const options = {
      keepAlive: true,
      maxFreeSockets: IDLE_PER_HOST,
      timeout: IDLE_MS,
      scheduling: 'lifo',
    } as const
    this.plain = this.within(new HttpAgent(options))
    this.secure = this.within(new HttpsAgent(options))
  }

  /** Closes all connections, including those in use. */
  close(): void {
    this.plain.destroy()
    this.secure.destroy()
  }

  /** Hooks that node:http's Agent calls when a connection becomes idle or is reused. */
  private within<A extends HttpAgent>(agent: A): A {
    const keep = agent.keepSocketAlive.bind(agent) as unknown as Keeps
    const reuse = agent.reuseSocket.bind(agent)
    const keeps: Keeps = socket => this.mayKeep(socket) && keep(socket) && this.noteIdle(socket)
    agent.keepSocketAlive = keeps
    agent.reuseSocket = (socket, request) => {
      this.idle.delete(socket)
      reuse(socket, request)
    }
    return agent
  }

  private mayKeep(socket: Duplex): boolean {
    const now = this.clock.monotonic()
    const since = this.since.get(socket) ?? now
    if (!this.since.has(socket)) {
      this.since.set(socket, now)
      socket.once('close', () => this.idle.delete(socket))
    }
    return now - since < MAX_AGE_MS && this.idle.size < IDLE_IN_TOTAL
  }

  private noteIdle(socket: Duplex): true {
    this.idle.add(socket)
    return true
  }
}
