/** Steps, triggers and what happened in them, in words. */
import { tr } from '../../../i18n/i18n'
import type { Config, FlowStep, Flow, StepType } from './graph'
import type { FlowNames, Named } from './names.svelte'

const text = (config: Config, name: string): string => {
  const value = config[name]
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : ''
}

const nameIn = (things: readonly Named[], id: string): string => things.find(one => one.id === id)?.name ?? ''

/** One line about how the step is set up, or that it is not. */
export function summaryOf({ type, config }: Pick<FlowStep, 'type' | 'config'>, names: FlowNames): string {
  const texts = tr().automations
  const { summaries } = texts
  const of = (name: string) => text(config, name)
  const said = (): string => {
    switch (type) {
      case 'email':
        return of('subject') || nameIn(names.templates, of('templateId'))
      case 'delay':
        return of('duration') && summaries.delay(Number(config['duration']), of('unit'))
      case 'condition':
        return of('field') && ruleOf(of('field'), of('operator'), config['value'])
      case 'wait_for_event':
        return summaries.wait(
          texts.events[of('eventType') as keyof typeof texts.events],
          Number(config['timeoutDays']),
        )
      case 'tag': {
        const name = of('tagName')
        return name && (of('action') === 'remove' ? summaries.removeTag(name) : summaries.addTag(name))
      }
      case 'add_to_list':
      case 'remove_from_list':
        return nameIn(names.audience.lists, of('listId'))
      case 'update_attribute':
        return of('attributeName') && summaries.set(of('attributeName'), of('attributeValue'))
      case 'webhook':
        return of('url') && `${of('method')} ${of('url').replace(/^https?:\/\//, '')}`
      case 'move_to_flow':
        return nameIn(names.automations, of('targetFlowId'))
    }
  }
  return said() || texts.unset
}

export function triggerSummary({ trigger: { type, config } }: Flow, names: FlowNames): string {
  const of = (name: string) => text(config, name)
  switch (type) {
    case 'list_joined':
    case 'list_left':
      return nameIn(names.audience.lists, of('listId')) || tr().automations.unset
    case 'tag_added':
    case 'tag_removed':
      return of('tagName') || tr().automations.unset
    case 'segment_entered':
      return nameIn(names.audience.segments, of('segmentId')) || tr().automations.unset
    case 'form_submitted':
      return nameIn(names.forms, of('formId'))
    case 'email_opened':
    case 'email_clicked':
      return nameIn(names.campaigns, of('campaignId')) || nameIn(names.templates, of('templateId'))
    case 'date':
      return of('field') || tr().automations.unset
    default:
      return ''
  }
}

export function fieldName(field: string): string {
  const fields: Readonly<Record<string, string>> = tr().segments.fields
  return fields[field] ?? field.replace(/^attributes\./, '')
}

export function ruleOf(field: string, operator: string, value: unknown): string {
  const { operators } = tr().automations
  return `${fieldName(field)} ${operators[operator] ?? operator} ${shown(value)}`
}

function shown(value: unknown): string {
  const { yes, no } = tr().common
  if (value === null || value === undefined || value === '') return tr().automations.nothing
  if (typeof value === 'boolean') return value ? yes : no
  return typeof value === 'string' ? value : JSON.stringify(value)
}

type Detail = Readonly<Record<string, unknown>>

/** Why a branch was taken, e.g. “plan = pro”; '' if the step has none. */
export function reasonOf(type: StepType, detail: Detail | null): string {
  const texts = tr().automations
  if (!detail) return ''
  if (type === 'condition') {
    const field = text(detail, 'field')
    if (field === '') return ''
    if ('actual' in detail) return texts.valueIs(fieldName(field), shown(detail['actual']))
    const rule = ruleOf(field, text(detail, 'operator'), detail['value'])
    return detail['result'] === true ? texts.ruleHolds(rule) : texts.ruleFails(rule)
  }
  return ''
}

export function whySkipped(detail: Detail | null): string {
  const texts = tr().automations
  const why = detail ? text(detail, 'reason') || text(detail, 'refused') : ''
  return why === '' ? texts.nothingToDo : (texts.skipReasons[why] ?? why)
}
