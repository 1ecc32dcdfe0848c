/** Automations and their steps as data. */
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

/** Configuration of a trigger or step; keys in camelCase. */
export type Config = Readonly<Record<string, unknown>>

export type Frequency = 'once' | 'every_time'

export interface TriggerConfig extends Config {
  readonly frequency: Frequency
  /** Contacts must match these to enter; absent: everyone may. */
  readonly conditions?: Conditions
}

/** Runs by status. Unfinished runs count as `active` even while the automation is paused. */
export interface RunCounts {
  readonly active: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
}

export interface Automation {
  readonly seq: number
  readonly id: string
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly name: string
  readonly status: AutomationStatus
  readonly triggerType: TriggerType
  readonly triggerConfig: TriggerConfig
  /** Counts edits of the trigger and steps, from 1. */
  readonly version: number
  readonly runs: RunCounts
  /** Latest activation, ms since epoch UTC; earlier events start no runs. */
  readonly activatedAt: number | null
  readonly createdAt: number
  readonly updatedAt: number
  readonly deletedAt: number | null
}

export interface Step {
  readonly seq: number
  readonly id: string
  /** 0-based, without gaps. */
  readonly position: number
  readonly type: StepTypeName
  readonly config: Config
}

/** A step as stored. Deleted steps are kept because runs and branches may still point at them. */
export interface StoredStep extends Step {
  readonly deletedAt: number | null
  /** Of a deleted step: `seq` of the step that followed it; null if it was the last. */
  readonly successor: number | null
}

export type NewStep = Omit<Step, 'seq'>

/** Per workspace; the event consumer reads all active ones. */
export const MAX_AUTOMATIONS = 500
export const MAX_STEPS = 200
