/** What an automation is: steps that a contact goes through once something has happened. Holds no logic. */
import type { Conditions } from '../../audience/segments/conditions.js'

export const AUTOMATION_STATUSES = ['draft', 'active', 'paused'] as const
export type AutomationStatus = (typeof AUTOMATION_STATUSES)[number]

export const TRIGGER_TYPES = [
  'contact_created',
  'list_joined',
  'list_left',
  'tag_added',
  'tag_removed',
  'segment_entered',
  'form_submitted',
  'email_opened',
  'email_clicked',
  'purchase',
  'page_viewed',
  'date',
  'manual',
] as const
export type TriggerType = (typeof TRIGGER_TYPES)[number]

export const STEP_TYPES = [
  'email',
  'delay',
  'condition',
  'tag',
  'add_to_list',
  'remove_from_list',
  'update_attribute',
  'webhook',
  'wait_for_event',
  'move_to_flow',
] as const
export type StepTypeName = (typeof STEP_TYPES)[number]

/** Of a trigger or a step: names in camelCase, every one of its type. */
export type Config = Readonly<Record<string, unknown>>

export type Frequency = 'once' | 'every_time'

export interface TriggerConfig extends Config {
  readonly frequency: Frequency
  /** Whom it is for; absent: everybody. */
  readonly conditions?: Conditions
}

/** Runs by how they stand; what is unfinished is `active`, also while the automation is paused. */
export interface RunCounts {
  readonly active: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
}

export interface Automation {
  /** By which runs and steps know it. */
  readonly seq: number
  readonly id: string
  /** Of a sandbox the sandbox's. */
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly name: string
  readonly status: AutomationStatus
  readonly triggerType: TriggerType
  readonly triggerConfig: TriggerConfig
  readonly runs: RunCounts
  /** When it became active last; what happened before starts nothing. Ms since epoch UTC. */
  readonly activatedAt: number | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly deletedAt: number | null
}

export interface Step {
  readonly seq: number
  readonly id: string
  /** From 0, without gaps. */
  readonly position: number
  readonly type: StepTypeName
  readonly config: Config
}

/** As steps are kept: those that were deleted lead on to the one that then came next. */
export interface KeptStep extends Step {
  readonly deletedAt: number | null
  /** Number of the step that a run goes on with; null: none came after it. */
  readonly successor: number | null
}

export type NewStep = Omit<Step, 'seq'>

/** Of one workspace: whoever follows events reads all active ones. */
export const MOST_AUTOMATIONS = 500
export const MOST_STEPS = 200
