/**
 * Program of a delivery thread: receives instructions from the server, delivers and renders, reports outcomes.
 *
 * Started by `worker-pool.ts`, never imported. An invalid instruction is a bug and ends the thread; the server restarts it.
 *
 * Building a message and rendering for a request have a limit in time. What exceeds it is interrupted. The thread is then spent, since the
 * interrupted code may have left anything half done: it finishes the deliveries in progress, so that none is repeated, returns what it has
 * not begun, and is replaced.
 */
import { ownCpuMs, ownThread, type OwnThread, runWithin, stepAside } from '../../world/threads.js'
import { openWorkerAgent } from './worker-agent.js'
import { PlanCache } from '../../content/rendering/plan-cache.js'
import {
  runRenderRequest,
  type RenderRequest,
  type RenderResult,
} from '../../content/rendering/render-request.js'
import { describeError } from '../../core/errors.js'
import type { Letter } from '../../mail/compose/compose.js'
import type { Outcome } from '../../mail/outcome.js'
import type { DeliveryAgent, DeliveryJob } from '../../queue/delivery-agent.js'
import { nextTurn } from '../../world/time/clock.js'
import type {
  DeliveryThreadOptions,
  Instruction,
  JobMessage,
  Report,
  SharedValue,
} from './worker-protocol.js'

/** Composing and signing a job takes about 1 ms of CPU; between batches of this size, sockets of running deliveries are served. */
const STARTED_PER_TURN = 4

/**
 * Messages up to this length, in UTF-16 units or octets, are built without the limit, which costs more than building most of them. Even
 * quadratic work ends within the limit at this length, and the linters rule out exponential work (`.oxlintrc.json`).
 */
const SHORT = 65_536

interface Waiting {
  readonly number: number
  readonly job: DeliveryJob
  readonly signal: AbortSignal
}

export function serveJobs(thread: OwnThread, agent: DeliveryAgent, taskLimitMs: number): void {
  const server = new JobServer(thread, agent, taskLimitMs)
  thread.listen(message => {
    for (const instruction of message as readonly Instruction[]) server.handle(instruction)
  })
}

class JobServer {
  private readonly thread: OwnThread
  private readonly agent: DeliveryAgent
  private readonly taskLimitMs: number
  private readonly shared = new Map<number, SharedValue>()
  private readonly inFlight = new Map<number, AbortController>()
  private readonly waiting: Waiting[] = []
  private readonly plans = new PlanCache()
  /** Contents of messages that were built in time. For another recipient only its own values are added. */
  private readonly built = new WeakSet<DeliveryJob['content']>()
  private isStarting = false
  private isSpent = false
  private reports: Report[] = []

  constructor(thread: OwnThread, agent: DeliveryAgent, taskLimitMs: number) {
    this.thread = thread
    this.agent = agent
    this.taskLimitMs = taskLimitMs
    // If the thread crashes, outcomes already known are still reported.
    thread.beforeEnd(() => this.sendReports())
    this.report({ kind: 'ready' })
  }

  handle(instruction: Instruction): void {
    switch (instruction.kind) {
      case 'keep':
        this.shared.set(instruction.id, toKeep(instruction.value))
        break
      case 'drop':
        this.shared.delete(instruction.id)
        break
      case 'deliver':
        this.enqueue(instruction.number, this.toJob(instruction.job))
        break
      case 'abort':
        this.inFlight.get(instruction.number)?.abort()
        break
      case 'render':
        void this.render(instruction.number, instruction.request)
        break
      case 'close':
        void this.close()
        break
    }
  }

  private toJob({ content, signingKeys, ...job }: JobMessage): DeliveryJob {
    return {
      ...job,
      content: typeof content === 'number' ? this.getShared(content, 'kind') : withBuffer(content),
      signingKeys:
        typeof signingKeys === 'number' ? this.getShared(signingKeys, 'length') : (signingKeys ?? []),
    }
  }

  /** @param mark a property that distinguishes a content from a list of keys */
  private getShared<M extends PropertyKey>(id: number, mark: M): Extract<SharedValue, Record<M, unknown>> {
    const value = this.shared.get(id)
    if (value === undefined || !(mark in value)) throw new Error(`no shared value ${id} of that kind`)
    return value as Extract<SharedValue, Record<M, unknown>>
  }

  private enqueue(number: number, job: DeliveryJob): void {
    if (this.isSpent) {
      this.report({ kind: 'returned', numbers: [number] })
      return
    }
    const aborting = new AbortController()
    this.inFlight.set(number, aborting)
    this.waiting.push({ number, job, signal: aborting.signal })
    if (!this.isStarting) void this.startJobs()
  }

  private async startJobs(): Promise<void> {
    this.isStarting = true
    while (this.waiting.length > 0) {
      this.startSome()
      await nextTurn()
    }
    this.isStarting = false
  }

  /** The agent builds the message before it waits for anything, so only that is limited. */
  private startSome(): void {
    const next = this.waiting.slice(0, STARTED_PER_TURN)
    if (next.every(({ job }) => this.isShort(job))) {
      this.waiting.splice(0, next.length)
      for (const waiting of next) void this.deliver(waiting)
      return
    }
    const task: { begun?: { readonly number: number; readonly cpuMs: number } | undefined } = {}
    const isInTime = runWithin(this.taskLimitMs, () => {
      for (const waiting of next) {
        task.begun = { number: waiting.number, cpuMs: ownCpuMs() }
        this.waiting.shift()
        void this.deliver(waiting)
        task.begun = undefined
        this.built.add(waiting.job.content)
      }
    })
    if (!isInTime) this.giveUp(task.begun)
  }

  private isShort({ content, mergeValues }: DeliveryJob): boolean {
    const shared = this.built.has(content) ? 0 : lengthOf(content)
    return shared <= SHORT && shared + jsonLength(mergeValues) <= SHORT
  }

  private giveUp(begun: { readonly number: number; readonly cpuMs: number } | undefined): void {
    if (begun) {
      const { number, cpuMs } = begun
      this.inFlight.get(number)?.abort()
      this.inFlight.delete(number)
      this.report({ kind: 'interrupted', number, cpuMs: ownCpuMs() - cpuMs })
    }
    this.spend(this.waiting.filter(({ number }) => number !== begun?.number))
  }

  private spend(notBegun: readonly Waiting[]): void {
    this.isSpent = true
    this.waiting.length = 0
    for (const { number } of notBegun) this.inFlight.delete(number)
    this.report({ kind: 'returned', numbers: notBegun.map(({ number }) => number) })
    this.report({ kind: 'spent' })
  }

  private async deliver({ number, job, signal }: Waiting): Promise<void> {
    try {
      this.report({ kind: 'outcome', number, outcome: await this.agent.deliver(job, signal) })
    } catch (error) {
      this.report({ kind: 'fault', number, text: describeError(error) })
    }
    this.inFlight.delete(number)
  }

  private async render(number: number, request: RenderRequest): Promise<void> {
    // Let sockets proceed between two of them.
    await nextTurn()
    if (this.isSpent) {
      this.report({ kind: 'returned', numbers: [number] })
      return
    }
    const cpuMs = ownCpuMs()
    try {
      const rendered: { result?: RenderResult } = {}
      const isInTime = runWithin(this.taskLimitMs, () => {
        rendered.result = runRenderRequest(request, this.plans)
      })
      if (rendered.result) this.report({ kind: 'rendered', number, result: rendered.result })
      else this.report({ kind: 'interrupted', number, cpuMs: ownCpuMs() - cpuMs })
      if (!isInTime) this.spend(this.waiting)
    } catch (error) {
      this.report({ kind: 'fault', number, text: describeError(error) })
    }
  }

  private async close(): Promise<void> {
    await this.agent.close()
    this.report({ kind: 'closed' })
  }

  private report(report: Report): void {
    this.reports.push(report)
    if (this.reports.length === 1) void nextTurn().then(() => this.sendReports())
  }

  private sendReports(): void {
    const handedOver: ArrayBuffer[] = []
    const reports = this.reports.map(report => withOwnBuffer(report, handedOver))
    this.reports = []
    this.thread.post(reports, handedOver)
  }
}

/** Without attachments, which are encoded in linear time. */
function lengthOf(content: DeliveryJob['content']): number {
  const data = jsonLength(content.merging?.data)
  if (content.kind === 'relayed')
    return content.message.length + (content.letter ? textLength(content.letter) : 0) + data
  return textLength(content) + data
}

function textLength({ subject, html = '', text = '', headers = [] }: Letter): number {
  return (
    subject.length + html.length + text.length + headers.reduce((sum, { value }) => sum + value.length, 0)
  )
}

function jsonLength(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length
}

function toKeep(value: SharedValue): SharedValue {
  return 'kind' in value ? withBuffer(value) : value
}

/** A Buffer arrives here as a plain Uint8Array. */
function withBuffer(content: DeliveryJob['content']): DeliveryJob['content'] {
  if (content.kind !== 'relayed') return content
  const { buffer, byteOffset, byteLength } = content.message
  return { ...content, message: Buffer.from(buffer, byteOffset, byteLength) }
}

/** A captured message is transferred, not copied. One that shares its ArrayBuffer (small Buffers do) is copied into its own first. */
function withOwnBuffer(report: Report, handedOver: ArrayBuffer[]): Report {
  if (report.kind !== 'outcome') return report
  const captured = capturedIn(report.outcome)
  if (captured === undefined) return report
  const isAlone = captured.buffer instanceof ArrayBuffer && captured.byteLength === captured.buffer.byteLength
  const own = isAlone ? captured : Buffer.from(new Uint8Array(captured).buffer)
  handedOver.push(own.buffer as ArrayBuffer)
  return { ...report, outcome: { ...report.outcome, captured: own } as Outcome }
}

function capturedIn(outcome: Outcome): Buffer | undefined {
  return outcome.kind === 'delivered' ? outcome.captured : undefined
}

stepAside()
const ownThreadPort = ownThread()
const { agent, taskLimitMs } = ownThreadPort.options as DeliveryThreadOptions
serveJobs(ownThreadPort, openWorkerAgent(agent), taskLimitMs)
