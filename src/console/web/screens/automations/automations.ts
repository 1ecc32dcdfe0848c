/** Automations in the console: what the API calls them, and how their states look. */
import type { components } from '#api/rest'
import type { Tone } from '../../lib/tone'
import type { IconName } from '../../lib/icons'
import type { StepType, TriggerType } from './flow/graph'

export type AutomationHead = components['schemas']['AutomationHead']
export type Run = components['schemas']['AutomationRun']
export type RunDetails = components['schemas']['AutomationRunDetails']
export type StepCounts = components['schemas']['AutomationStepCounts']
export type Problem = components['schemas']['AutomationProblem']
export type DryRun = components['schemas']['AutomationDryRunResult']

export const STATUSES = ['draft', 'active', 'paused'] as const

export const RUN_STATUSES = ['active', 'completed', 'failed', 'paused', 'cancelled'] as const

export const STEP_TYPES: readonly StepType[] = [
  'email',
  'delay',
  'condition',
  'wait_for_event',
  'tag',
  'add_to_list',
  'remove_from_list',
  'update_attribute',
  'webhook',
  'move_to_flow',
]

export const TRIGGER_TYPES: readonly TriggerType[] = [
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
]

export const STEP_ICONS: Readonly<Record<StepType, IconName>> = {
  email: 'messages',
  delay: 'jobs',
  condition: 'blockConditional',
  wait_for_event: 'history',
  tag: 'tags',
  add_to_list: 'lists',
  remove_from_list: 'lists',
  update_attribute: 'contacts',
  webhook: 'webhooks',
  move_to_flow: 'automations',
}

export function toneOf(status: AutomationHead['status']): Tone {
  return status === 'active' ? 'good' : status === 'paused' ? 'warn' : 'none'
}

export function runTone(status: Run['status']): Tone {
  const tones = {
    active: 'info',
    completed: 'good',
    failed: 'bad',
    paused: 'warn',
    cancelled: 'none',
  } as const
  return tones[status]
}
