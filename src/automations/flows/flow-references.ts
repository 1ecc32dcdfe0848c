/**
 * References from automations to lists, tags, segments, templates and other automations, in triggers and steps.
 *
 * Only active automations prevent a deletion. A rename is applied to drafts and paused ones too.
 */
import { fold } from '../../core/fold.js'
import type { Queries } from '../../db/database.js'
import type { Referenced, ReferenceHolder } from '../../resource/references.js'
import type { Rule } from '../../audience/segments/conditions.js'
import {
  namesInRule,
  namesInRules,
  renamedInRule,
  renamedInRules,
} from '../../audience/segments/rule-references.js'
import type { Automation, Config, Step, StepTypeName, TriggerConfig, TriggerType } from './automation.js'
import { findAllAutomations, updateAutomation } from './automation-store.js'
import { findSteps, updateStep } from './step-store.js'

/** Fields that hold a reference: a tag's name, otherwise an id. */
const TRIGGER_FIELDS: Partial<Record<TriggerType, Partial<Record<Referenced['kind'], string>>>> = {
  list_joined: { list: 'listId' },
  list_left: { list: 'listId' },
  tag_added: { tag: 'tagName' },
  tag_removed: { tag: 'tagName' },
  segment_entered: { segment: 'segmentId' },
  email_opened: { template: 'templateId', campaign: 'campaignId' },
  email_clicked: { template: 'templateId', campaign: 'campaignId' },
}

const STEP_FIELDS: Partial<Record<StepTypeName, Partial<Record<Referenced['kind'], string>>>> = {
  email: { template: 'templateId' },
  tag: { tag: 'tagName' },
  add_to_list: { list: 'listId' },
  remove_from_list: { list: 'listId' },
  move_to_flow: { automation: 'targetFlowId' },
}

function refersTo(config: Config, field: string | undefined, { kind, id, name }: Referenced): boolean {
  const value = field === undefined ? undefined : config[field]
  if (typeof value !== 'string') return false
  return kind === 'tag' ? fold(value.trim()) === fold(name) : value.trim().toLowerCase() === id
}

function ruleOf({ type, config }: Pick<Step, 'type' | 'config'>): Rule | undefined {
  return type === 'condition' ? (config as unknown as Rule) : undefined
}

function triggerRefersTo({ triggerType, triggerConfig }: Automation, thing: Referenced): boolean {
  const { conditions } = triggerConfig
  return (
    refersTo(triggerConfig, TRIGGER_FIELDS[triggerType]?.[thing.kind], thing) ||
    (conditions !== undefined && namesInRules(conditions, thing))
  )
}

function stepRefersTo(step: Step, thing: Referenced): boolean {
  const rule = ruleOf(step)
  return rule ? namesInRule(rule, thing) : refersTo(step.config, STEP_FIELDS[step.type]?.[thing.kind], thing)
}

export const automationReferences: ReferenceHolder = {
  async findUses(db, thing) {
    const uses: Automation[] = []
    for (const automation of await findAllAutomations(db, thing.workspaceId))
      if (automation.status === 'active' && (await flowRefersTo(db, automation, thing))) uses.push(automation)
    return uses.map(({ id, name }) => ({ what: 'active automation', id, name }))
  },
  async rename(db, thing, name) {
    for (const automation of await findAllAutomations(db, thing.workspaceId)) {
      if (triggerRefersTo(automation, thing)) {
        const triggerConfig = renamedTrigger(automation, thing, name)
        await updateAutomation(db, automation.seq, { ...automation, triggerConfig })
      }
      for (const step of await findSteps(db, automation.seq))
        if (stepRefersTo(step, thing))
          await updateStep(db, step.seq, { config: renamedStep(step, thing, name) })
    }
  },
}

async function flowRefersTo(db: Queries, automation: Automation, thing: Referenced): Promise<boolean> {
  if (triggerRefersTo(automation, thing)) return true
  return (await findSteps(db, automation.seq)).some(step => stepRefersTo(step, thing))
}

function renamedTrigger(
  { triggerType, triggerConfig }: Automation,
  thing: Referenced,
  name: string,
): TriggerConfig {
  const { conditions } = triggerConfig
  const field = TRIGGER_FIELDS[triggerType]?.[thing.kind]
  const renamed = conditions && renamedInRules(conditions, thing, name)
  return {
    ...triggerConfig,
    ...(thing.kind === 'tag' && field !== undefined && refersTo(triggerConfig, field, thing)
      ? { [field]: name }
      : {}),
    ...(renamed ? { conditions: renamed } : {}),
  }
}

function renamedStep(step: Step, thing: Referenced, name: string): Config {
  const rule = ruleOf(step)
  if (rule) return { ...step.config, ...renamedInRule(rule, thing, name) }
  return thing.kind === 'tag' ? { ...step.config, tagName: name } : step.config
}
