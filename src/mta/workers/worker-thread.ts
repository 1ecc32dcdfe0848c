/**
 * One delivery thread as the server sees it: the jobs it has in hand, what it was given to keep, and its end.
 *
 * Used by `worker-pool.ts`. Never starts another thread, never chooses a job. Fails: when the thread ends, every job it
 * had in hand ends with it as `deferred`, and renderings reject as unavailable; where the agent over there breaks its promise never to reject, so does this.
 */
import type { RenderRequest, RenderResult } from '../../content/rendering/render-request.js'
import { AppError } from '../../core/errors.js'
import type { Deferred, Outcome } from '../../mail/outcome.js'
import type { DeliveryJob } from '../../queue/delivery-agent.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import type { SpawnThread, Thread, ThreadEnd } from '../../world/threads.js'
import type { AgentOptions } from './worker-agent.js'
import type { Instruction, JobSlip, Report } from './worker-protocol.js'
import { SharedAccount } from './worker-shared.js'

export interface DeliveryThreadParts {
  readonly spawn: SpawnThread
  readonly agent: AgentOptions
  readonly clock: Clock
  /** How long a connection waits for its next message, ms. */
  readonly idleMs: number
  /** It can be given jobs from now on. */
  readonly onReady: () => void
  /** @param lost how many jobs it had in hand */
  readonly onEnd: (end: ThreadEnd, lost: number) => void
}

interface InHand {
  readonly settle: (outcome: Outcome) => void
  readonly fail: (error: Error) => void
}

interface Rendering {
  readonly settle: (result: RenderResult) => void
  readonly fail: (error: Error) => void
}

/**
 * For strings and objects; rendered messages are buffers and do not count. A mail of 25 MB takes more than 512 while it is
 * composed. Only a fault needs ever more, and that shall end a thread and not the server.
 */
const HEAP_MEGABYTES = 1_024
const MOST_DESTINATIONS = 1_000

const PROGRAM = new URL('./worker-main.js', import.meta.url)

export class DeliveryThread {
  private readonly parts: DeliveryThreadParts
  private readonly thread: Thread
  private readonly ended: Promise<void>
  private state: 'starting' | 'ready' | 'ended' = 'starting'
  private readonly inHand = new Map<number, InHand>()
  private readonly renderings = new Map<number, Rendering>()
  private lastNumber = 0
  private readonly shared = new SharedAccount()
  private instructions: Instruction[] = []
  private isSendPlanned = false
  private onClosed = () => {}
  /** When a message to this domain was last delivered, on the monotonic clock; longest ago first. */
  private readonly destinations = new Map<string, number>()

  constructor(parts: DeliveryThreadParts) {
    this.parts = parts
    let tellEnded = () => {}
    this.ended = new Promise(resolve => (tellEnded = resolve))
    this.thread = parts.spawn(PROGRAM, {
      options: parts.agent,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => this.read(message as readonly Report[]),
      onEnd: end => {
        this.takeLeave(end)
        tellEnded()
      },
    })
  }

  get isReady(): boolean {
    return this.state === 'ready'
  }

  /** Jobs and renderings in hand. */
  get load(): number {
    return this.inHand.size + this.renderings.size
  }

  /** Whether it probably has an idle connection for mail to this domain. */
  isConnectedTo(domain: string): boolean {
    const usedAt = this.destinations.get(domain)
    return usedAt !== undefined && this.parts.clock.monotonic() - usedAt < this.parts.idleMs
  }

  /** @param domain of the recipient */
  deliver(job: DeliveryJob, domain: string, signal: AbortSignal): Promise<Outcome> {
    const number = ++this.lastNumber
    const abort = () => this.instruct({ kind: 'abort', number })
    const outcome = new Promise<Outcome>((settle, fail) => this.inHand.set(number, { settle, fail }))
    this.instruct({ kind: 'deliver', number, slip: this.toSlip(job) })
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    return outcome
      .then(known => {
        if (known.kind === 'delivered') this.noteConnection(domain)
        return known
      })
      .finally(() => signal.removeEventListener('abort', abort))
  }

  /** @throws AppError unavailable where the thread ends first */
  render(request: RenderRequest): Promise<RenderResult> {
    const number = ++this.lastNumber
    this.instruct({ kind: 'render', number, request })
    return new Promise((settle, fail) => this.renderings.set(number, { settle, fail }))
  }

  /** Ends it once its idle connections have said QUIT, or after `limitMs`. Call it when nothing is in hand. */
  async close(limitMs: number): Promise<void> {
    if (this.state === 'ready') {
      const closed = new Promise<void>(resolve => (this.onClosed = resolve))
      const isOver = new AbortController()
      this.instruct({ kind: 'close' })
      await Promise.race([closed, this.ended, this.parts.clock.sleep(limitMs, isOver.signal)])
      isOver.abort()
    }
    await this.terminate()
  }

  /** Ends it wherever it is; what it has in hand gets no outcome, as in a crash of the whole server. */
  async terminate(): Promise<void> {
    this.inHand.clear()
    this.giveUpRenderings()
    await this.thread.terminate()
    await this.ended
  }

  private toSlip({ content, signingKeys, submission: _, dueAt: __, ...job }: DeliveryJob): JobSlip {
    return {
      ...job,
      content: this.shared.give(content, this.instructions),
      ...(signingKeys.length === 0 ? {} : { signingKeys: this.shared.give(signingKeys, this.instructions) }),
    }
  }

  private instruct(instruction: Instruction): void {
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

  private read(reports: readonly Report[]): void {
    for (const report of reports)
      switch (report.kind) {
        case 'ready':
          this.state = 'ready'
          this.parts.onReady()
          break
        case 'outcome':
          this.take(report.number)?.settle(withBuffer(report.outcome))
          break
        case 'rendered':
          this.takeRendering(report.number)?.settle(report.result)
          break
        case 'fault': {
          const failed = this.take(report.number) ?? this.takeRendering(report.number)
          failed?.fail(new Error(report.text))
          break
        }
        case 'closed':
          this.onClosed()
          break
      }
  }

  private take(number: number): InHand | undefined {
    const job = this.inHand.get(number)
    this.inHand.delete(number)
    return job
  }

  private takeRendering(number: number): Rendering | undefined {
    const rendering = this.renderings.get(number)
    this.renderings.delete(number)
    return rendering
  }

  private giveUpRenderings(): void {
    const lost = [...this.renderings.values()]
    this.renderings.clear()
    for (const { fail } of lost)
      fail(new AppError('unavailable', 'the thread that rendered it has ended; try again'))
  }

  private takeLeave(end: ThreadEnd): void {
    this.state = 'ended'
    const lost = [...this.inHand.values()]
    this.inHand.clear()
    this.parts.onEnd(end, lost.length)
    for (const { settle } of lost) settle(WORKER_LOST)
    this.giveUpRenderings()
  }

  private noteConnection(domain: string): void {
    this.destinations.delete(domain)
    this.destinations.set(domain, this.parts.clock.monotonic())
    const eldest =
      this.destinations.size > MOST_DESTINATIONS ? this.destinations.keys().next().value : undefined
    if (eldest !== undefined) this.destinations.delete(eldest)
  }
}

/**
 * For every job alike, though most were not past the final dot: which of them a server has taken, nobody can know
 * (RFC 5321 §4.5.3.2.6). So none of them asks to be tried sooner than after any other failure: what may have arrived must
 * not be offered again at once, and a fault of ours that comes back with the same message must not come back at once.
 */
const WORKER_LOST: Deferred = {
  kind: 'deferred',
  cause: 'transient',
  scope: 'source',
  permanence: 'transient',
  subtype: 'worker_lost',
  summary: 'the thread that delivered it ended unexpectedly; see the log',
  tried: [],
}

/** Crossing over makes a plain Uint8Array of a Buffer. */
function withBuffer(outcome: Outcome): Outcome {
  if (outcome.kind !== 'delivered' || outcome.captured === undefined) return outcome
  const { buffer, byteOffset, byteLength } = outcome.captured
  return { ...outcome, captured: Buffer.from(buffer, byteOffset, byteLength) }
}
