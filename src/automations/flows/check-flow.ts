/**
 * Checks an automation before it becomes active: everything it refers to exists, and no loop of steps runs without a wait.
 *
 * Errors name steps by position (from 1), type and id.
 */
import type { FlowParts } from '../automation-parts.js'
import { STEP_TYPE } from '../steps/step-types.js'
import type { Queries } from '../../db/database.js'
import type { Automation, Step } from './automation.js'
import { findSteps } from './step-store.js'
import { findActingWorkspace } from '../../accounts/workspace-store.js'
import { findForm } from '../../audience/forms/form-store.js'
import { findList } from '../../audience/lists/list-store.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { findAskedTemplate } from '../../msa/merged-content.js'

/** @returns what is wrong; undefined if it may become active */
export async function findFlowFault(
  parts: FlowParts,
  db: Queries,
  automation: Automation,
): Promise<string | undefined> {
  const trigger = await findTriggerFault(parts, db, automation)
  if (trigger !== undefined) return `the trigger ${trigger}`
  const steps = await findSteps(db, automation.seq)
  for (const step of steps) {
    const fault = await STEP_TYPE[step.type].findFault(step.config, { db, parts, automation })
    if (fault !== undefined) return `${nameOf(step)} ${fault}`
    const missing = branchesOf(step).find(id => !steps.some(one => one.id === id))
    if (missing !== undefined) return `${nameOf(step)} leads to a step that does not exist: ${missing}`
  }
  const looping = findLoop(steps)
  return looping && `${nameOf(looping)} leads into a loop without a delay or wait`
}

export function nameOf({ position, type, id }: Step): string {
  return `step ${position + 1} (${type}, ${id})`
}

export function branchesOf({ type, config }: Pick<Step, 'type' | 'config'>): string[] {
  return (STEP_TYPE[type].branches ?? []).flatMap(field => {
    const id = config[field]
    return typeof id === 'string' ? [id] : []
  })
}

/** Depth-first search for a cycle of steps without a delay or wait. */
function findLoop(steps: readonly Step[]): Step | undefined {
  const byId = new Map(steps.map(step => [step.id, step]))
  const finished = new Set<Step>()
  const trail = new Set<Step>()
  const walk = (step: Step): Step | undefined => {
    if (trail.has(step)) return step
    if (finished.has(step)) return undefined
    trail.add(step)
    for (const next of immediateSuccessors(step, steps, byId)) {
      const found = walk(next)
      if (found) return found
    }
    trail.delete(step)
    finished.add(step)
    return undefined
  }
  for (const step of steps) {
    const found = walk(step)
    if (found) return found
  }
  return undefined
}

/** Steps that can follow without time passing. */
function immediateSuccessors(step: Step, steps: readonly Step[], byId: ReadonlyMap<string, Step>): Step[] {
  if (STEP_TYPE[step.type].waits === true) return []
  const following = steps[step.position + 1]
  return [...branchesOf(step).map(id => byId.get(id)), following].filter(one => one !== undefined)
}

/** @returns what is wrong, completing "the trigger ..."; undefined if nothing is */
export async function findTriggerFault(
  parts: Pick<FlowParts, 'hasCampaign'>,
  db: Queries,
  { workspaceId, triggerType, triggerConfig }: Automation,
): Promise<string | undefined> {
  const idIn = (field: string) => {
    const value = triggerConfig[field]
    return typeof value === 'string' ? value.trim() : ''
  }
  switch (triggerType) {
    case 'list_joined':
    case 'list_left': {
      const id = idIn('listId')
      if (id === '') return 'has no listId'
      const list = isUuid(id) ? await findList(db, workspaceId, id) : undefined
      if (!list) return 'refers to a list that does not exist'
      return list.type === 'static'
        ? undefined
        : 'refers to a dynamic list, which contacts do not join; use a segment with its conditions'
    }
    case 'tag_added':
    case 'tag_removed':
      return idIn('tagName') === '' ? 'has no tagName' : undefined
    case 'segment_entered': {
      const id = idIn('segmentId')
      if (id === '') return 'has no segmentId'
      return isUuid(id) && (await findSegment(db, workspaceId, id))
        ? undefined
        : 'refers to a segment that does not exist'
    }
    case 'form_submitted': {
      const id = idIn('formId')
      if (id === '' || (isUuid(id) && (await findForm(db, workspaceId, id)))) return undefined
      return `refers to a form that does not exist: ${id}`
    }
    case 'email_opened':
    case 'email_clicked': {
      const [campaign, template] = [idIn('campaignId'), idIn('templateId')]
      if (campaign !== '' && !(isUuid(campaign) && (await parts.hasCampaign(db, workspaceId, campaign))))
        return `refers to a campaign that does not exist: ${campaign}`
      if (template !== '' && !(await hasTemplate(db, workspaceId, template)))
        return `refers to a template that does not exist: ${template}`
      return undefined
    }
    case 'date':
      return idIn('field') === '' ? 'has no field' : undefined
    default:
      return undefined
  }
}

/** A sandbox can use the templates of its live workspace too. */
async function hasTemplate(db: Queries, workspaceId: string, id: string): Promise<boolean> {
  const workspace = await findActingWorkspace(db, workspaceId)
  if (!workspace) return false
  try {
    return (await findAskedTemplate(db, workspace, id)) !== undefined
  } catch (error) {
    if (error instanceof AppError && error.code === 'template_not_found') return false
    throw error
  }
}
