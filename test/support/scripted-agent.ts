/**
 * A delivery agent that does as the test says: answers at once, or keeps a delivery until the test finishes it.
 *
 * A kept delivery that is aborted ends as the real agent ends one: deferred, subtype `shutdown`.
 */
import type { Outcome } from '../../src/mail/outcome.js'
import type { DeliveryAgent, DeliveryJob } from '../../src/queue/delivery-agent.js'
import { deferred } from './outcomes.js'

/** What to answer: an outcome, a failure to throw, or `wait` for `finish`. */
export type Script = (job: DeliveryJob) => Outcome | 'wait' | Error | Promise<Outcome>

export class ScriptedAgent implements DeliveryAgent {
  /** Every job handed over, in order. */
  readonly jobs: DeliveryJob[] = []
  isClosed = false
  script: Script
  private readonly waiting = new Map<string, (outcome: Outcome) => void>()

  constructor(script: Script) {
    this.script = script
  }

  async deliver(job: DeliveryJob, signal: AbortSignal): Promise<Outcome> {
    this.jobs.push(job)
    const answer = await this.script(job)
    if (answer instanceof Error) throw answer
    if (answer !== 'wait') return answer
    return new Promise(resolve => {
      this.waiting.set(job.messageId, resolve)
      signal.addEventListener('abort', () =>
        this.finish(job.messageId, {
          ...deferred,
          subtype: 'shutdown',
          summary: 'broken off: the server is stopping',
          tried: [],
        }),
      )
    })
  }

  /** Message ids handed over, in order. */
  get ids(): string[] {
    return this.jobs.map(job => job.messageId)
  }

  /** Message ids that wait for `finish`. */
  get waitingIds(): string[] {
    return [...this.waiting.keys()]
  }

  finish(messageId: string, outcome: Outcome): void {
    const resolve = this.waiting.get(messageId)
    this.waiting.delete(messageId)
    resolve?.(outcome)
  }

  async close(): Promise<void> {
    this.isClosed = true
  }
}
