/** What a run is: one contact on its way through an automation. Holds no logic. */

export const RUN_STATUSES = ['active', 'completed', 'failed', 'paused', 'cancelled'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** As it is kept: that its automation is paused stands with the automation. */
export type KeptStatus = Exclude<RunStatus, 'paused'>

export type AwaitedEvent = 'email_opened' | 'email_clicked' | 'purchase' | 'page_viewed'

/**
 * What a run that has begun its step waits for.
 *
 *   time      the delay to be over
 *   event     an event, until the moment that it is due
 *   arrived   nothing more: the event has come
 */
export type Wait = 'time' | 'event' | 'arrived'

export interface Run {
  readonly seq: number
  readonly id: string
  /** Number of the automation. */
  readonly automation: number
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly contactId: string
  readonly contactEmail: string
  readonly status: KeptStatus
  /** Number of the step that is next, or that it waits in; null where none is left. */
  readonly step: number | null
  readonly wait: Wait | null
  readonly waitEvent: AwaitedEvent | null
  /** The message that the event has to be about; null: any. */
  readonly waitMessage: string | null
  /** When it goes on, ms since epoch UTC; null where it is at an end or stands still. */
  readonly dueAt: number | null
  /** The same of one that stands still because its automation is paused. */
  readonly parkedDueAt: number | null
  readonly stepsDone: number
  /** Of the step that is next, in a row. */
  readonly failures: number
  /** Of these failures, those that the other side answered. */
  readonly refusals: number
  readonly lastMessageId: string | null
  /** What started it: a type of trigger, `api` or `move_to_flow`. */
  readonly triggerType: string
  readonly triggerData: Readonly<Record<string, unknown>>
  readonly exitReason: string | null
  readonly error: string | null
  readonly startedAt: number
  readonly endedAt: number | null
}

/** A run executes at most so many steps, those of the flow that it came from counted. */
export const MOST_STEPS_OF_A_RUN = 1_000

export type StepResult = 'waiting' | 'completed' | 'skipped' | 'retrying' | 'failed'

/** One line of a run's log. */
export interface StepRecord {
  readonly stepId: string
  readonly stepType: string
  readonly outcome: StepResult
  readonly detail: Readonly<Record<string, unknown>> | null
  readonly at: number
}
