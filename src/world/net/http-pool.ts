/**
 * Connections that are kept for the next request to the same host, within bounds of number, idleness and age.
 *
 * Handed to the HTTP client by whoever sends many requests. What is in it was dialled at an address that was checked then
 * (`fetch.ts`); a connection that is kept leads where it led. It ends after a minute all the same, so that a host that moves is followed.
 * Never holds a connection that the operator named: those may lead where others must not. Fails: never.
 */
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import type { Clock } from '../time/clock.js'

/** Of one host, without a request: as many as are asked at once where much is told, for making one costs as much as a request. */
const IDLE_PER_HOST = 64
const IDLE_IN_ALL = 512
const IDLE_MS = 10_000
const OLDEST_MS = 60_000

/** Whether a connection that is done with its request is kept. */
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

  /** Ends all connections, also those with a request under way. */
  close(): void {
    this.plain.destroy()
    this.secure.destroy()
  }

  /** An agent asks these two of itself, for each connection that becomes idle or is taken again (node:http, Agent). */
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
    return now - since < OLDEST_MS && this.idle.size < IDLE_IN_ALL
  }

  private noteIdle(socket: Duplex): true {
    this.idle.add(socket)
    return true
  }
}
