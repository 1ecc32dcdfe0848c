/**
 * The interface of a step type: its configuration, its check at activation and its execution.
 *
 * `prepare` runs outside any transaction (reads a template, calls a web server). The function it returns runs inside one and writes
 * the step's effects together with the run's new position.
 */
import type { Contact } from '../../audience/contacts/contact.js'
import type { Queries, Tx } from '../../db/database.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation, Step, StepTypeName } from '../flows/automation.js'
import type { PathName } from '../flows/path-name.js'
import type { AwaitedEvent, Run } from '../runs/run.js'
import type { Fields } from './config-fields.js'
import type { Acting } from '../../audience/audience-parts.js'
import type { FlowFault } from '../flows/flow-fault.js'

export type Detail = Readonly<Record<string, unknown>>

export type StepOutcome =
  /** The run continues with the next step, unless `goTo` or `skipCount` is given. */
  | {
      readonly kind: 'done'
      readonly isSkipped?: boolean
      readonly goTo?: string
      readonly skipCount?: number
      /** Default: `next`. */
      readonly path?: PathName
      readonly detail?: Detail
      readonly messageId?: string
    }
  | {
      readonly kind: 'wait'
      /** Ms since epoch UTC. */
      readonly until: number
      readonly event?: { readonly type: AwaitedEvent; readonly messageId: string | null }
      readonly detail?: Detail
    }
  | { readonly kind: 'exit'; readonly exitReason: string; readonly detail?: Detail }

export interface StepContext {
  readonly parts: FlowParts
  readonly automation: Automation
  readonly step: Step
  readonly run: Run
}

export interface StepExecution extends StepContext {
  readonly tx: Tx
  readonly contact: Contact
  /** Ms since epoch UTC. */
  readonly now: number
}

export type ExecuteStep = (execution: StepExecution) => Promise<StepOutcome>

export interface ActivationCheck {
  readonly db: Queries
  readonly parts: FlowParts
  readonly automation: Automation
}

export interface StepType {
  readonly name: StepTypeName
  readonly fields: Fields
  /** Fields holding the id of a step; null or absent means the next step. */
  readonly branches?: readonly string[]
  /** Time passes in this step, so a loop through it is allowed. */
  readonly waits?: boolean
  /** `prepare` may take seconds; it runs in a separate slot. */
  readonly isSlow?: boolean
  /** Called at activation. @returns what is wrong, completing "step 3 (email) ..."; undefined if nothing is */
  findFault(config: Step['config'], check: ActivationCheck): Promise<FlowFault | undefined>
  /** @throws StepError or AppError; the step is retried */
  prepare(context: StepContext): Promise<ExecuteStep>
  /** Called when the awaited event has arrived, or the time is over. */
  resume?(execution: StepExecution, reason: 'time' | 'event'): StepOutcome
}

/** A failed step; `detail` goes into the step log. */
export class StepError extends Error {
  override readonly name = 'StepError'
  readonly detail: Detail
  /** The server gave a final answer, so a retry is a new request with a new idempotency key. */
  readonly isAnswered: boolean

  constructor(message: string, detail: Detail, isAnswered = false) {
    super(message)
    this.detail = detail
    this.isAnswered = isAnswered
  }
}

export function actingFor({ workspaceId, isSandbox }: Pick<Run, 'workspaceId' | 'isSandbox'>): Acting {
  return { workspaceId, isSandbox, source: 'automation' }
}
