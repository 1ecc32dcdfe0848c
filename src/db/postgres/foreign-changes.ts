/**
 * Changes by other nodes: each node notifies the others of the topics of its commits, and counts theirs.
 *
 * NOTIFY takes a lock that serialises commits, so it is sent after them, at most ten times a second and never inside a transaction. LISTEN
 * has its own connection. Notifications can be lost, so every topic also counts as changed once per interval: a long one while this node
 * hears its own notifications, which it sends for that purpose if it has no others, and a short one otherwise (the connection is down, or
 * leads through a pooler that does not pass them on).
 */
import type pg from 'pg'
import { describeError } from '../../core/errors.js'
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import type { Timer } from '../../world/time/clock.js'
import type { ReportedChanges, Topic } from '../changes.js'
import type { Services } from '../services.js'
import { openClient } from './connections.js'
import type { Servers } from './servers.js'

const CHANNEL = 'postroad_changes'
/** Pause between two notifications. */
const NOTIFY_MS = 100
/** Pause before a notification that failed is sent again. */
const NOTIFY_AGAIN_MS = 1_000
/** Every topic counts as changed this often if notifications arrive: the node that wrote may have died before it notified. */
const LONG_FLOOR_MS = 30_000
/** And this often if they do not. */
const FLOOR_MS = 2_000
/** This node notifies at least this often, to hear whether that arrives. */
const PROBE_MS = 10_000
/** Notifications arrive if one of our own did within this time. */
const HEARD_MS = PROBE_MS + FLOOR_MS
const RECONNECT: BackoffPolicy = { firstMs: 200, factor: 2, maxMs: 5_000 }

export interface ForeignChangesParts extends Pick<Services, 'clock' | 'random' | 'log'> {
  /** For LISTEN: not through PgBouncer in transaction mode. */
  readonly servers: Servers
  readonly pool: pg.Pool
  /** Where changes of other nodes are reported, as if they were our own. */
  readonly changes: ReportedChanges
}

interface Notice {
  readonly from: string
  readonly topics: readonly Topic[]
}

export class ForeignChanges {
  private readonly parts: ForeignChangesParts
  /** Tells our own notifications from others'. */
  private readonly id: string
  private readonly closing = new AbortController()
  private readonly pending = new Set<Topic>()
  private timer: Timer | undefined
  private listening: Promise<void> = Promise.resolve()
  private client: pg.Client | undefined
  /** Monotonic, ms. */
  private notifiedAt = -Infinity
  private heardAt = -Infinity
  private countedAt = -Infinity

  constructor(parts: ForeignChangesParts) {
    this.parts = parts
    this.id = parts.random.bytes(9).toString('base64url')
  }

  start(): void {
    this.listening = this.listen()
    this.watch()
  }

  /** Call after a commit. */
  noteOwn(topic: Topic): void {
    this.pending.add(topic)
    this.notifyIn(NOTIFY_MS)
  }

  async close(): Promise<void> {
    this.closing.abort()
    this.timer?.cancel()
    if (this.pending.size > 0) await this.notify()
    await this.client?.end().catch(() => {})
    await this.listening
  }

  private notifyIn(ms: number): void {
    this.timer ??= this.parts.clock.after(ms, () => void this.notify())
  }

  private async notify(): Promise<void> {
    const notice: Notice = { from: this.id, topics: [...this.pending] }
    this.pending.clear()
    this.timer = undefined
    this.notifiedAt = this.parts.clock.monotonic()
    try {
      await this.parts.pool.query('select pg_notify($1, $2)', [CHANNEL, JSON.stringify(notice)])
    } catch {
      if (this.closing.signal.aborted) return
      for (const topic of notice.topics) this.pending.add(topic)
      if (this.pending.size > 0) this.notifyIn(NOTIFY_AGAIN_MS)
    }
  }

  /** Keeps a listening connection open until closed. */
  private async listen(): Promise<void> {
    const { clock, random, log, servers } = this.parts
    const isClosed = () => this.closing.signal.aborted
    for (let failures = 0; !isClosed();) {
      const client = (this.client = openClient(servers, 'postroad listen'))
      const ended = new Promise<void>(resolve => client.on('end', resolve))
      client.on('error', () => {})
      client.on('notification', ({ payload }) => this.receive(payload))
      try {
        await client.connect()
        await client.query(`listen ${CHANNEL}`)
        failures = 0
        this.countAll()
        await ended
      } catch (error) {
        await client.end().catch(() => {})
        failures += 1
        if (!isClosed()) log.debug('database notifications interrupted', { error: describeError(error) })
      }
      this.heardAt = -Infinity
      if (!isClosed())
        await clock.sleep(
          retryDelayMs(RECONNECT, Math.max(1, failures), random.fraction()),
          this.closing.signal,
        )
    }
  }

  private receive(payload: string | undefined): void {
    const { from, topics } = readNotice(payload)
    if (from === this.id) {
      this.heardAt = this.parts.clock.monotonic()
      return
    }
    for (const topic of topics) this.parts.changes.report(topic)
  }

  private watch(): void {
    const { clock } = this.parts
    clock.after(FLOOR_MS, () => {
      if (this.closing.signal.aborted) return
      const now = clock.monotonic()
      if (now - this.heardAt > HEARD_MS || now - this.countedAt >= LONG_FLOOR_MS) this.countAll()
      if (now - this.notifiedAt > PROBE_MS - FLOOR_MS) this.notifyIn(0)
      this.watch()
    })
  }

  private countAll(): void {
    this.countedAt = this.parts.clock.monotonic()
    this.parts.changes.reportAll()
  }
}

/** Any client of the database can notify; payloads of other programs are ignored. */
function readNotice(payload = ''): Notice {
  try {
    const { from, topics } = JSON.parse(payload) as Partial<Notice>
    return { from: String(from), topics: Array.isArray(topics) ? topics : [] }
  } catch {
    return { from: '', topics: [] }
  }
}
