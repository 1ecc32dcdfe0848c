/**
 * What a type of step is: its configuration, what it lacks before it can run, and what it does. Holds no logic.
 *
 * A step is prepared outside of any transaction (a template is read, a web server asked) and then taken in one, in which its effects
 * and the mark that it was taken are written together: both are there, or neither is.
 */
import type { Contact } from '../../audience/contacts/contact.js'
import type { Queries, Tx } from '../../db/database.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation, Step, StepTypeName } from '../flows/automation.js'
import type { AwaitedEvent, Run } from '../runs/run.js'
import type { Fields } from './config-fields.js'

export type Detail = Readonly<Record<string, unknown>>

/** What a step came to. */
export type StepOutcome =
  /** The run goes on: with the next step where no other is named. */
  | {
      readonly kind: 'done'
      readonly isSkipped?: boolean
      /** Id of the step that it goes on with. */
      readonly goTo?: string
      /** Steps after this one that are passed over. */
      readonly pass?: number
      readonly detail?: Detail
      /** Of the mail that it sent. */
      readonly messageId?: string
    }
  | {
      readonly kind: 'wait'
      /** Ms since epoch UTC. */
      readonly until: number
      readonly event?: { readonly type: AwaitedEvent; readonly messageId: string | null }
      readonly detail?: Detail
    }
  /** The run is at its end. */
  | { readonly kind: 'exit'; readonly exitReason: string; readonly detail?: Detail }

/** A step that is about to be taken, outside of the transaction. */
export interface Coming {
  readonly parts: FlowParts
  readonly automation: Automation
  readonly step: Step
  readonly run: Run
}

/** The same, inside of it. */
export interface Taking extends Coming {
  readonly tx: Tx
  readonly contact: Contact
  /** Ms since epoch UTC. */
  readonly now: number
}

export type Take = (taking: Taking) => Promise<StepOutcome>

/** What is asked before an automation becomes active. */
export interface Checking {
  readonly db: Queries
  readonly parts: FlowParts
  readonly automation: Automation
}

export interface StepType {
  readonly name: StepTypeName
  readonly fields: Fields
  /** Fields that name a step; null or nothing there: the next one. */
  readonly branches?: readonly string[]
  /** Time passes in it: a loop that leads through one is no endless work. */
  readonly waits?: boolean
  /** Others do not wait while it is prepared: it may take seconds. */
  readonly isSlow?: boolean
  /** @returns what is missing, completing "step 3 (email) ..."; undefined where nothing is */
  findFault(config: Step['config'], checking: Checking): Promise<string | undefined>
  /** @throws StepFault, or an AppError: the step is tried again later */
  prepare(coming: Coming): Promise<Take>
  /** What it waited for has happened, or was waited for long enough. */
  goOn?(taking: Taking, how: 'time' | 'event'): StepOutcome
}

/** A step that failed, with what its log shall show. */
export class StepFault extends Error {
  override readonly name = 'StepFault'
  readonly detail: Detail
  /** The other side has answered the request for good; what is sent next is another request. */
  readonly isAnswered: boolean

  constructor(message: string, detail: Detail, isAnswered = false) {
    super(message)
    this.detail = detail
    this.isAnswered = isAnswered
  }
}
