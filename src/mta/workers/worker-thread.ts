/**
 * One delivery thread as the server sees it: its jobs, its shared values, and its end. If the thread crashes, its jobs end as `deferred`
 * and its renderings reject as unavailable. One that is spent returns what it has not begun, and finishes the rest.
 */
import type { RenderRequest, RenderResult } from '../../content/rendering/render-request.js'
import { AppError } from '../../core/errors.js'
import type { Deferred, Outcome } from '../../mail/outcome.js'
import type { DeliveryJob } from '../../queue/delivery-agent.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import type { SpawnThread, Thread, ThreadEnd } from '../../world/threads.js'
import type { AgentOptions } from './worker-agent.js'
import type {
  DeliveryThreadOptions,
  Instruction,
  JobMessage,
  Report,
  SharedValue,
} from './worker-protocol.js'

interface DeliveryThreadParts {
  readonly spawn: SpawnThread
  readonly agent: AgentOptions
  readonly taskLimitMs: number
  readonly clock: Clock
  readonly idleMs: number
  readonly onReady: () => void
  /** A task took too long: the thread takes no more, and ends once it has finished. */
  readonly onSpent: () => void
  /** A spent thread has no more tasks. */
  readonly onFinished: () => void
  readonly onEnd: (end: ThreadEnd, lost: number) => void
}

/** The thread did not finish the task. */
export type Unfinished =
  | { readonly kind: 'returned' }
  | { readonly kind: 'interrupted'; readonly cpuMs: number }

interface PendingJob {
  readonly settle: (outcome: Outcome | Unfinished) => void
  readonly fail: (error: Error) => void
}

interface PendingRender {
  readonly settle: (result: RenderResult | Unfinished) => void
  readonly fail: (error: Error) => void
}

/**
 * For strings and objects; rendered messages are Buffers and do not count. Composing a 25 MB mail takes more than 512 MB. Beyond this only
 * a bug is plausible, and it must end the thread, not the server.
 */
const HEAP_MEGABYTES = 1_024
const MAX_DESTINATIONS = 1_000

const PROGRAM = new URL('./worker-main.js', import.meta.url)

export class DeliveryThread {
  private readonly parts: DeliveryThreadParts
  private readonly thread: Thread
  private readonly ended: Promise<void>
  private state: 'starting' | 'ready' | 'spent' | 'ended' = 'starting'
  private readonly jobs = new Map<number, PendingJob>()
  private readonly renders = new Map<number, PendingRender>()
  private lastNumber = 0
  private readonly shared = new SharedValues()
  private instructions: Instruction[] = []
  private isSendPlanned = false
  private isFinished = false
  private onClosed = () => {}
  /** Time of the last delivery by domain, monotonic; oldest first. */
  private readonly destinations = new Map<string, number>()

  constructor(parts: DeliveryThreadParts) {
    this.parts = parts
    let resolveEnded = () => {}
    this.ended = new Promise(resolve => (resolveEnded = resolve))
    this.thread = parts.spawn(PROGRAM, {
      options: { agent: parts.agent, taskLimitMs: parts.taskLimitMs } satisfies DeliveryThreadOptions,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => this.handleReports(message as readonly Report[]),
      onEnd: end => {
        this.handleEnd(end)
        resolveEnded()
      },
    })
  }

  get isReady(): boolean {
    return this.state === 'ready'
  }

  get load(): number {
    return this.jobs.size + this.renders.size
  }

  /** Whether an idle connection for this domain is likely. */
  isConnectedTo(domain: string): boolean {
    const usedAt = this.destinations.get(domain)
    return usedAt !== undefined && this.parts.clock.monotonic() - usedAt < this.parts.idleMs
  }

  deliver(job: DeliveryJob, domain: string, signal: AbortSignal): Promise<Outcome | Unfinished> {
    const number = ++this.lastNumber
    const abort = () => this.post({ kind: 'abort', number })
    const outcome = new Promise<Outcome | Unfinished>((settle, fail) =>
      this.jobs.set(number, { settle, fail }),
    )
    this.post({ kind: 'deliver', number, job: this.toMessage(job) })
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    return outcome
      .then(known => {
        if (known.kind === 'delivered') this.recordConnection(domain)
        return known
      })
      .finally(() => signal.removeEventListener('abort', abort))
  }

  /** @throws AppError unavailable if the thread ends first */
  render(request: RenderRequest): Promise<RenderResult | Unfinished> {
    const number = ++this.lastNumber
    this.post({ kind: 'render', number, request })
    return new Promise((settle, fail) => this.renders.set(number, { settle, fail }))
  }

  /** Ends the thread once its idle connections have sent QUIT, or after `limitMs`. Call when no job is in flight. */
  async close(limitMs: number): Promise<void> {
    if (this.state === 'ready' || this.state === 'spent') {
      const closed = new Promise<void>(resolve => (this.onClosed = resolve))
      const isOver = new AbortController()
      this.post({ kind: 'close' })
      await Promise.race([closed, this.ended, this.parts.clock.sleep(limitMs, isOver.signal)])
      isOver.abort()
    }
    await this.terminate()
  }

  /** Ends the thread immediately; jobs in flight get no outcome, as if the server had crashed. */
  async terminate(): Promise<void> {
    this.jobs.clear()
    this.failRenders()
    await this.thread.terminate()
    await this.ended
  }

  /** Ends the thread immediately; jobs in flight end as if it had crashed. */
  abandon(): void {
    void this.thread.terminate()
  }

  private toMessage({ content, signingKeys, submission: _, dueAt: __, ...job }: DeliveryJob): JobMessage {
    return {
      ...job,
      content: this.shared.share(content, this.instructions),
      ...(signingKeys.length === 0 ? {} : { signingKeys: this.shared.share(signingKeys, this.instructions) }),
    }
  }

  private post(instruction: Instruction): void {
    this.instructions.push(instruction)
    if (this.isSendPlanned) return
    this.isSendPlanned = true
    void nextTurn().then(() => this.sendInstructions())
  }

  private sendInstructions(): void {
    this.shared.dropOldest(this.instructions)
    this.thread.post(this.instructions)
    this.instructions = []
    this.isSendPlanned = false
  }

  private handleReports(reports: readonly Report[]): void {
    for (const report of reports)
      switch (report.kind) {
        case 'ready':
          this.state = 'ready'
          this.parts.onReady()
          break
        case 'outcome':
          this.takeJob(report.number)?.settle(withBuffer(report.outcome))
          break
        case 'rendered':
          this.takeRender(report.number)?.settle(report.result)
          break
        case 'returned':
          for (const number of report.numbers) this.settleUnfinished(number, { kind: 'returned' })
          break
        case 'interrupted':
          this.settleUnfinished(report.number, { kind: 'interrupted', cpuMs: report.cpuMs })
          break
        case 'spent':
          this.state = 'spent'
          this.parts.onSpent()
          break
        case 'fault': {
          const failed = this.takeJob(report.number) ?? this.takeRender(report.number)
          failed?.fail(new Error(report.text))
          break
        }
        case 'closed':
          this.onClosed()
          break
      }
    if (this.state !== 'spent' || this.load > 0 || this.isFinished) return
    this.isFinished = true
    this.parts.onFinished()
  }

  private takeJob(number: number): PendingJob | undefined {
    const job = this.jobs.get(number)
    this.jobs.delete(number)
    return job
  }

  private takeRender(number: number): PendingRender | undefined {
    const rendering = this.renders.get(number)
    this.renders.delete(number)
    return rendering
  }

  private settleUnfinished(number: number, unfinished: Unfinished): void {
    this.takeJob(number)?.settle(unfinished)
    this.takeRender(number)?.settle(unfinished)
  }

  private failRenders(): void {
    const lost = [...this.renders.values()]
    this.renders.clear()
    for (const { fail } of lost)
      fail(new AppError('unavailable', 'the rendering thread ended; try again', { retryAfterMs: 1_000 }))
  }

  private handleEnd(end: ThreadEnd): void {
    this.state = 'ended'
    const lost = [...this.jobs.values()]
    this.jobs.clear()
    this.parts.onEnd(end, lost.length)
    for (const { settle } of lost) settle(WORKER_LOST)
    this.failRenders()
  }

  private recordConnection(domain: string): void {
    this.destinations.delete(domain)
    this.destinations.set(domain, this.parts.clock.monotonic())
    const oldest =
      this.destinations.size > MAX_DESTINATIONS ? this.destinations.keys().next().value : undefined
    if (oldest !== undefined) this.destinations.delete(oldest)
  }
}

/**
 * The same for all jobs of a crashed thread: some may have been past the final dot, and whether the server accepted those is unknown (RFC 5321 §4.5.3.2.6).
 * They are retried after the normal delay, so that neither a possible duplicate nor a message that crashes the thread is retried
 * immediately.
 */
export const WORKER_LOST: Deferred = {
  kind: 'deferred',
  cause: 'transient',
  scope: 'source',
  permanence: 'transient',
  subtype: 'worker_lost',
  summary: 'the delivery thread ended unexpectedly; see the log',
  tried: [],
}

/** A Buffer arrives here as a plain Uint8Array. */
function withBuffer(outcome: Outcome): Outcome {
  if (outcome.kind !== 'delivered' || outcome.captured === undefined) return outcome
  const { buffer, byteOffset, byteLength } = outcome.captured
  return { ...outcome, captured: Buffer.from(buffer, byteOffset, byteLength) }
}

/** Per thread: some 80 newsletters of 50 KB, half of the queue's own content cache. A value dropped too early is only sent again. */
const MAX_KEPT_BYTES = 8 * 1_024 * 1_024
/** Ids of values seen once. */
const MAX_USED_ONCE = 4_096

/** Ids are the same in all threads. */
const numbers = new WeakMap<SharedValue, number>()
let lastNumber = 0

class SharedValues {
  /** Bytes by id; least recently used first. */
  private readonly kept = new Map<number, number>()
  private bytes = 0
  /** Ids of values used once; oldest first. */
  private readonly usedOnce = new Set<number>()

  /**
   * Adds the instruction that the thread needs before it can use the value.
   *
   * @returns the value's id, or the value if the thread does not keep it
   */
  share<V extends SharedValue>(value: V, instructions: Instruction[]): number | V {
    const id = numberOf(value)
    const known = this.kept.get(id)
    if (known === undefined && !this.usedOnce.delete(id)) {
      this.noteFirstUse(id)
      return value
    }
    const bytes = known ?? bytesOf(value)
    if (known === undefined) {
      instructions.push({ kind: 'keep', id, value })
      this.bytes += bytes
    }
    this.kept.delete(id)
    this.kept.set(id, bytes)
    return id
  }

  private noteFirstUse(id: number): void {
    this.usedOnce.add(id)
    const [oldest] = this.usedOnce
    if (this.usedOnce.size > MAX_USED_ONCE && oldest !== undefined) this.usedOnce.delete(oldest)
  }

  /** Call after all jobs that use the shared values were added. */
  dropOldest(instructions: Instruction[]): void {
    for (const [id, bytes] of this.kept) {
      if (this.bytes <= MAX_KEPT_BYTES) break
      instructions.push({ kind: 'drop', id })
      this.kept.delete(id)
      this.bytes -= bytes
    }
  }
}

function numberOf(value: SharedValue): number {
  const known = numbers.get(value)
  if (known !== undefined) return known
  lastNumber += 1
  numbers.set(value, lastNumber)
  return lastNumber
}

/** Strings take up to two bytes per character; everything else is rounded up. */
function bytesOf(value: SharedValue): number {
  if (!('kind' in value)) return textBytes(value.map(key => key.privateKey))
  const data = value.merging?.data === undefined ? '' : JSON.stringify(value.merging.data)
  if (value.kind === 'relayed') return value.message.length + textBytes([data, value.letter?.html ?? ''])
  const { subject, html = '', text = '', headers = [], attachments = [] } = value
  const attached = attachments.reduce((sum, { octets }) => sum + octets.length, 0)
  return textBytes([subject, html, text, data, ...headers.map(header => header.value)]) + attached
}

function textBytes(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + 2 * text.length, 1_000)
}
