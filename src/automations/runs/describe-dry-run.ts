/** A dry run in plain English, e.g. "day 3: sends the email “Hello”, because plan = pro". Pure. */
import type { DryRun, DryStep } from './dry-run.js'

const DAY_MS = 86_400_000

/** From 1. */
export function dayOf({ startedAt }: Pick<DryRun, 'startedAt'>, at: number): number {
  return Math.floor((at - startedAt) / DAY_MS) + 1
}

/** @param before the step taken before it; a condition says why this one is taken */
export function describeDryStep(run: DryRun, one: DryStep, before: DryStep | undefined): string {
  const because = before === undefined ? '' : reasonOf(before)
  return `day ${dayOf(run, one.at)}: ${describe(one)}${because === '' ? '' : `, because ${because}`}`
}

function reasonOf({ step: { type }, path, detail }: DryStep): string {
  if (type === 'condition') {
    const { field, operator, value, actual } = detail
    if ('actual' in detail) return `${String(field)} = ${shown(actual)}`
    const rule = `${String(field)} ${String(operator)} ${shown(value)}`
    return path === 'yes' ? rule : `not ${rule}`
  }
  if (type === 'wait_for_event')
    return path === 'event'
      ? `${String(detail['event'])} happened`
      : `${String(detail['event'])} did not happen`
  return ''
}

function shown(value: unknown): string {
  if (value === null) return 'nothing'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function describe({ step: { type, config }, outcome, path, detail }: DryStep): string {
  if (outcome === 'failed') return `${NAMES[type]} fails: ${shown(detail['error'])}`
  if (outcome === 'skipped') {
    const why = detail['reason'] ?? detail['refused']
    return `${NAMES[type]} is skipped${why === undefined ? ' because it changes nothing' : `: ${shown(why)}`}`
  }
  switch (type) {
    case 'email':
      return `sends the email “${shown(config['subject'])}” to ${shown(detail['to'])}`
    case 'delay':
      return `waits ${shown(config['duration'])} ${shown(config['unit'])}`
    case 'condition':
      return `checks ${shown(config['field'])} ${shown(config['operator'])} ${shown(config['value'])}: ${path ?? ''}`
    case 'tag':
      return config['action'] === 'remove'
        ? `removes the tag ${shown(detail['remove'])}`
        : `adds the tag ${shown(detail['add'])}`
    case 'add_to_list':
      return `adds the contact to the list ${shown(detail['list_id'])}`
    case 'remove_from_list':
      return `removes the contact from the list ${shown(detail['list_id'])}`
    case 'update_attribute':
      return `sets ${Object.entries(detail)
        .map(([name, value]) => `${name} to ${shown(value)}`)
        .join(', ')}`
    case 'webhook':
      return `sends a ${shown(detail['method'])} request to ${shown(detail['host'])}`
    case 'wait_for_event':
      return `waits at most ${shown(config['timeoutDays'])} days for ${shown(config['eventType'])}`
    case 'move_to_flow':
      return `moves to the automation ${shown(detail['automation_id'])}`
  }
}

const NAMES: Readonly<Record<DryStep['step']['type'], string>> = {
  email: 'the email',
  delay: 'the delay',
  condition: 'the condition',
  tag: 'the change of tags',
  add_to_list: 'the addition to a list',
  remove_from_list: 'the removal from a list',
  update_attribute: 'the change of an attribute',
  webhook: 'the web request',
  wait_for_event: 'the wait',
  move_to_flow: 'the move to another automation',
}
