/**
 * `GET /live/stream`: live figures and what has changed, as server-sent events, for open screens.
 *
 * One computation a second serves all streams, and none runs while there is no stream. Each stream gets at most one event a second, about
 * records that its operator may read; a stream that has nothing to say for `HEARTBEAT_MS` gets a comment. Session and roles are read again
 * with each computation: a stream ends with its session. A client that reads slowly gets fewer events, never old ones.
 */
import { AppError } from '../core/errors.js'
import { FairShares } from '../core/fair-shares.js'
import type { Holder } from '../core/holder.js'
import { eventText, HEARTBEAT, type EventStream } from '../http/answer/event-stream.js'
import { hasRoleIn, mayOperate, operatorHolder, type OperatorPrincipal } from '../http/operator.js'
import { ALL_WORKSPACES } from '../http/roles.js'
import type { Clock, Timer } from '../world/time/clock.js'
import type { Changed, LiveChanges } from './live-changes.js'
import { LIVE_TOPICS, type LiveTopic } from './live-topics.js'

/** Between two events of a stream, ms. */
const PERIOD_MS = 1_000
const HEARTBEAT_MS = 15_000
/** Browsers keep one stream per visible window. */
export const MAX_PER_OPERATOR = 8
/** In total, divided among workspaces. */
export const MAX_STREAMS = 64
const RETRY_AFTER_MS = 30_000

export interface StreamParts {
  readonly clock: Clock
  readonly changes: LiveChanges
  /** @returns undefined once the session or token has ended */
  readonly recheckOperator: (operator: OperatorPrincipal) => Promise<OperatorPrincipal | undefined>
  /** The owner of a workspace's sandbox mail. */
  readonly sandboxIdOf: (workspaceId: string) => string
  /** `GET /live` as JSON. */
  readonly readFigures: () => Promise<string>
}

export interface Wanted {
  /** Only changes in this workspace, besides those of the appliance. */
  readonly workspaceId: string | undefined
  readonly hasFigures: boolean
}

export class LiveStreams {
  private readonly parts: StreamParts
  private readonly streams = new Set<Stream>()
  private readonly places = new FairShares(MAX_STREAMS, { perKey: MAX_PER_OPERATOR })
  private timer: Timer | undefined
  private isClosed = false

  constructor(parts: StreamParts) {
    this.parts = parts
  }

  get count(): number {
    return this.streams.size
  }

  /** The stream counts from its first piece on. @throws AppError rate_limited, unavailable, from the first piece */
  open(operator: OperatorPrincipal, wanted: Wanted): EventStream {
    return { pieces: gone => this.pieces(operator, wanted, gone) }
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    this.isClosed = true
    this.timer?.cancel()
    for (const stream of this.streams) stream.end()
  }

  private async *pieces(
    operator: OperatorPrincipal,
    wanted: Wanted,
    gone: AbortSignal,
  ): AsyncIterable<string> {
    const holder = operatorHolder(operator, wanted.workspaceId)
    this.takePlace(holder)
    const stream = new Stream(operator, wanted, this.parts)
    this.streams.add(stream)
    gone.addEventListener('abort', () => stream.end())
    try {
      if (this.streams.size === 1) await this.begin()
      yield `retry: ${RETRY_AFTER_MS / 10}\n${eventText('ready', '{}')}`
      for (;;) {
        const text = await stream.next()
        if (text === undefined) return
        yield text
      }
    } finally {
      this.streams.delete(stream)
      this.places.release(holder)
      if (this.streams.size === 0) this.rest()
    }
  }

  private takePlace(holder: Holder): void {
    if (this.isClosed) throw new AppError('unavailable', 'the server is shutting down')
    const shortage = this.places.take(holder)
    const details = { retryAfterMs: RETRY_AFTER_MS }
    if (shortage === 'key')
      throw new AppError('rate_limited', `at most ${MAX_PER_OPERATOR} streams per operator are open`, details)
    if (shortage !== undefined)
      throw new AppError('unavailable', 'too many streams are open; close some, then try again', details)
  }

  private async begin(): Promise<void> {
    await this.parts.changes.begin()
    this.schedule()
  }

  private rest(): void {
    this.timer?.cancel()
    this.timer = undefined
    this.parts.changes.end()
  }

  private schedule(): void {
    this.timer?.cancel()
    this.timer = this.parts.clock.after(PERIOD_MS, () => void this.tick())
  }

  private async tick(): Promise<void> {
    const { changes, readFigures } = this.parts
    try {
      const changed = await changes.take()
      const wantsFigures = [...this.streams].some(stream => stream.getsFigures)
      const figures = wantsFigures ? await readFigures().catch(() => undefined) : undefined
      for (const stream of this.streams) await this.tell(stream, changed, figures)
    } catch {
      // The event log could not be read; its changes are sent later.
    }
    if (this.streams.size > 0 && !this.isClosed) this.schedule()
  }

  private async tell(stream: Stream, changed: Changed, figures: string | undefined): Promise<void> {
    const { recheckOperator } = this.parts
    const operator = await recheckOperator(stream.operator).catch(() => stream.operator)
    if (operator) stream.tell(operator, changed, figures)
    else stream.end()
  }
}

/** One client, with the news not yet sent to it. */
class Stream {
  operator: OperatorPrincipal
  private readonly wanted: Wanted
  private readonly parts: StreamParts
  private readonly topics = new Set<LiveTopic>()
  private figures: string | undefined
  private toldAt: number
  private isEnded = false
  private wake: (() => void) | undefined
  private isWoken = false

  constructor(operator: OperatorPrincipal, wanted: Wanted, parts: StreamParts) {
    this.operator = operator
    this.wanted = wanted
    this.parts = parts
    this.toldAt = parts.clock.monotonic()
  }

  get getsFigures(): boolean {
    return this.wanted.hasFigures && mayOperate(this.operator, LIVE_FIGURES, ALL_WORKSPACES)
  }

  tell(operator: OperatorPrincipal, changed: Changed, figures: string | undefined): void {
    this.operator = operator
    for (const [topic, owners] of changed) if (this.sees(topic, owners)) this.topics.add(topic)
    this.figures = this.getsFigures ? figures : undefined
    const isDue = this.parts.clock.monotonic() - this.toldAt >= HEARTBEAT_MS
    if (this.topics.size > 0 || this.figures !== undefined || isDue) this.wakeUp()
  }

  end(): void {
    this.isEnded = true
    this.wakeUp()
  }

  /** Waits for something to say. @returns undefined at the end */
  async next(): Promise<string | undefined> {
    if (!this.isWoken && !this.isEnded) await new Promise<void>(resolve => (this.wake = resolve))
    this.wake = undefined
    this.isWoken = false
    if (this.isEnded) return undefined
    this.toldAt = this.parts.clock.monotonic()
    const { figures } = this
    const changed = [...this.topics].sort()
    this.topics.clear()
    this.figures = undefined
    if (changed.length === 0 && figures === undefined) return HEARTBEAT
    return eventText(
      'live',
      `{"changed":${JSON.stringify(changed)}${figures === undefined ? '' : `,"figures":${figures}`}}`,
    )
  }

  private wakeUp(): void {
    this.isWoken = true
    this.wake?.()
  }

  private sees(topic: LiveTopic, owners: ReadonlySet<string | undefined>): boolean {
    const permission = LIVE_TOPICS[topic]
    const { workspaceId } = this.wanted
    const { operator } = this
    const inAll = mayOperate(operator, permission, ALL_WORKSPACES)
    if (workspaceId === undefined && inAll) return true
    const known = workspaceId === undefined ? workspacesOf(operator) : [workspaceId]
    const readable = known.filter(id => mayOperate(operator, permission, id))
    if (readable.length === 0 && !inAll) return false
    if (owners.has(undefined)) return true
    return readable.some(id => owners.has(id) || owners.has(this.parts.sandboxIdOf(id)))
  }
}

const LIVE_FIGURES = 'system:read'

function workspacesOf({ grants }: OperatorPrincipal): readonly string[] {
  return grants.map(({ workspaceId }) => workspaceId).filter(id => id !== ALL_WORKSPACES)
}

/** @throws AppError not_found: without a role in the workspace, it does not exist */
export function requireRoleIn(operator: OperatorPrincipal, workspaceId: string | undefined): void {
  if (workspaceId !== undefined && !hasRoleIn(operator, workspaceId))
    throw new AppError('not_found', 'no such workspace', { path: 'workspace_id' })
}
