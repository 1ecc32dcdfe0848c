/**
 * The thread's side of the conversation with the server: instructions in, outcomes out.
 *
 * Called by `worker-main.ts`. Knows of delivering only the interface. Fails: an instruction that makes no sense is a
 * mistake of ours and ends the thread.
 */
import { PlanCache } from '../../content/rendering/plan-cache.js'
import { carryOut, type RenderRequest } from '../../content/rendering/render-request.js'
import { describeError } from '../../core/errors.js'
import type { Outcome } from '../../mail/outcome.js'
import type { DeliveryAgent, DeliveryJob } from '../../queue/delivery-agent.js'
import { nextTurn } from '../../world/time/clock.js'
import type { OwnThread } from '../../world/threads.js'
import type { Instruction, JobSlip, Report, SharedValue } from './worker-protocol.js'

/**
 * A job that begins is composed and signed at one go, some 1 ms; between so many of them the sockets of those under way
 * have their turn.
 */
const BEGUN_PER_TURN = 4

interface Waiting {
  readonly number: number
  readonly job: DeliveryJob
  readonly signal: AbortSignal
}

export function serveJobs(thread: OwnThread, agent: DeliveryAgent): void {
  const desk = new JobDesk(thread, agent)
  thread.listen(message => {
    for (const instruction of message as readonly Instruction[]) desk.obey(instruction)
  })
}

class JobDesk {
  private readonly thread: OwnThread
  private readonly agent: DeliveryAgent
  private readonly shared = new Map<number, SharedValue>()
  private readonly inHand = new Map<number, AbortController>()
  private readonly waiting: Waiting[] = []
  private readonly plans = new PlanCache()
  private isBeginning = false
  private reports: Report[] = []

  constructor(thread: OwnThread, agent: DeliveryAgent) {
    this.thread = thread
    this.agent = agent
    // Outcomes that are known are not lost with those that are not.
    thread.beforeEnd(() => this.sendReports())
    this.report({ kind: 'ready' })
  }

  obey(instruction: Instruction): void {
    switch (instruction.kind) {
      case 'keep':
        this.shared.set(instruction.id, keepable(instruction.value))
        break
      case 'drop':
        this.shared.delete(instruction.id)
        break
      case 'deliver':
        this.take(instruction.number, this.toJob(instruction.slip))
        break
      case 'abort':
        this.inHand.get(instruction.number)?.abort()
        break
      case 'render':
        void this.render(instruction.number, instruction.request)
        break
      case 'close':
        void this.close()
        break
    }
  }

  private toJob({ content, signingKeys, ...slip }: JobSlip): DeliveryJob {
    return {
      ...slip,
      content: typeof content === 'number' ? this.find(content, 'kind') : withBuffer(content),
      signingKeys: typeof signingKeys === 'number' ? this.find(signingKeys, 'length') : (signingKeys ?? []),
    }
  }

  /** @param mark a property that tells a content from a list of keys */
  private find<M extends PropertyKey>(id: number, mark: M): Extract<SharedValue, Record<M, unknown>> {
    const value = this.shared.get(id)
    if (value === undefined || !(mark in value)) throw new Error(`nothing of that kind was given as ${id}`)
    return value as Extract<SharedValue, Record<M, unknown>>
  }

  private take(number: number, job: DeliveryJob): void {
    const aborting = new AbortController()
    this.inHand.set(number, aborting)
    this.waiting.push({ number, job, signal: aborting.signal })
    if (!this.isBeginning) void this.beginAll()
  }

  private async beginAll(): Promise<void> {
    this.isBeginning = true
    while (this.waiting.length > 0) {
      for (const waiting of this.waiting.splice(0, BEGUN_PER_TURN)) void this.deliver(waiting)
      await nextTurn()
    }
    this.isBeginning = false
  }

  private async deliver({ number, job, signal }: Waiting): Promise<void> {
    try {
      this.report({ kind: 'outcome', number, outcome: await this.agent.deliver(job, signal) })
    } catch (error) {
      this.report({ kind: 'fault', number, text: describeError(error) })
    }
    this.inHand.delete(number)
  }

  private async render(number: number, request: RenderRequest): Promise<void> {
    // Let sockets proceed between two of them.
    await nextTurn()
    try {
      this.report({ kind: 'rendered', number, result: carryOut(request, this.plans) })
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

function keepable(value: SharedValue): SharedValue {
  return 'kind' in value ? withBuffer(value) : value
}

/** Crossing over makes a plain Uint8Array of a Buffer. */
function withBuffer(content: DeliveryJob['content']): DeliveryJob['content'] {
  if (content.kind !== 'relayed') return content
  const { buffer, byteOffset, byteLength } = content.message
  return { ...content, message: Buffer.from(buffer, byteOffset, byteLength) }
}

/** A caught message changes owner; one that shares its memory with others (small buffers do) moves to its own first. */
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
