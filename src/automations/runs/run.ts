/** One contact's way through an automation, as data. */

export const RUN_STATUSES = ['active', 'completed', 'failed', 'paused', 'cancelled'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** `paused` is not stored: it follows from the status of the automation. */
export type StoredStatus = Exclude<RunStatus, 'paused'>

export type AwaitedEvent = 'email_opened' | 'email_clicked' | 'purchase' | 'page_viewed'

/**
 * Conditions that a run waits for in its current step.
 *
 *   time      `dueAt`
 *   event     `waitEvent`, until `dueAt`
 *   arrived   nothing: the event has arrived
 */
export type Wait = 'time' | 'event' | 'arrived'

export interface Run {
  readonly seq: number
  readonly id: string
  readonly automation: number
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly contactId: string
  readonly contactEmail: string
  readonly status: StoredStatus
  /** `seq` of the next step, or of the one it waits in; null at the end of the flow. */
  readonly step: number | null
  readonly wait: Wait | null
  readonly waitEvent: AwaitedEvent | null
  /** The awaited event must be about this message; null: any message. */
  readonly waitMessage: string | null
  /** Ms since epoch UTC; null if ended or parked. */
  readonly dueAt: number | null
  /** `dueAt` of a parked run: one whose automation is paused. */
  readonly parkedDueAt: number | null
  readonly stepsDone: number
  /** Consecutive failures of the current step. */
  readonly failures: number
  /** Failures in which the web server answered; part of the idempotency key. */
  readonly refusals: number
  readonly lastMessageId: string | null
  /** A trigger type, `api` or `move_to_flow`. */
  readonly triggerType: string
  /** Version of the automation when the run started. */
  readonly flowVersion: number
  readonly triggerData: Readonly<Record<string, unknown>>
  readonly exitReason: string | null
  readonly error: string | null
  readonly startedAt: number
  readonly endedAt: number | null
}

/** Includes the steps of automations it moved from. */
export const MAX_STEPS_PER_RUN = 1_000

export type StepResult = 'waiting' | 'completed' | 'skipped' | 'retrying' | 'failed'

export interface StepRecord {
  readonly stepId: string
  readonly stepType: string
  readonly outcome: StepResult
  readonly detail: Readonly<Record<string, unknown>> | null
  readonly at: number
}
