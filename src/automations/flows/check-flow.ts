/**
 * Checks an automation before it becomes active: everything it refers to exists, and no loop of steps runs without a wait.
 *
 * Errors name steps by position (from 1), type and id.
 */
import type { FlowParts } from '../automation-parts.js'
import { STEP_TYPE } from '../steps/step-types.js'
import type { Queries } from '../../db/database.js'
import type { Automation, Step } from './automation.js'
import { missing, unknown, type FlowFault } from './flow-fault.js'
import { branchesOf, END, pathsOf, reachable } from './paths.js'
import { findSteps } from './step-store.js'
import { findActingWorkspace } from '../../accounts/workspace-store.js'
import { findForm } from '../../audience/forms/form-store.js'
import { findList } from '../../audience/lists/list-store.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { findAskedTemplate } from '../../content/templates/asked-template.js'

export type ProblemCode =
  | 'invalid_trigger'
  | 'invalid_step'
  | 'missing_step'
  | 'loop'
  | 'unreachable_step'
  | 'no_steps'
  | 'strange_condition'

export interface Problem {
  /** Null: the trigger or the whole. */
  readonly step: Step | null
  readonly code: ProblemCode
  /** Completes the name of the step, e.g. "has no subject"; of the trigger likewise. */
  readonly fault: string
  /** Of `invalid_trigger` and `invalid_step`. */
  readonly cause?: FlowFault
  /** A warning does not keep the automation from becoming active. */
  readonly isWarning: boolean
}

/** @returns what is wrong; undefined if it may become active */
export async function findFlowFault(
  parts: FlowParts,
  db: Queries,
  automation: Automation,
): Promise<string | undefined> {
  const problems = await findProblems(parts, db, automation, await findSteps(db, automation.seq))
  const first = problems.find(({ isWarning }) => !isWarning)
  return first && describeProblem(first)
}

export function describeProblem({ step, code, fault }: Problem): string {
  if (code === 'invalid_trigger') return `the trigger ${fault}`
  return step ? `${nameOf(step)} ${fault}` : fault
}

/** Everything that is wrong or strange, in the order of the steps. */
export async function findProblems(
  parts: FlowParts,
  db: Queries,
  automation: Automation,
  steps: readonly Step[],
): Promise<Problem[]> {
  const problems: Problem[] = []
  const add = (step: Step | null, code: ProblemCode, fault: string, isWarning = false) =>
    problems.push({ step, code, fault, isWarning })
  const addFault = (step: Step | null, code: ProblemCode, cause: FlowFault) =>
    problems.push({ step, code, fault: cause.text, cause, isWarning: false })
  const trigger = await findTriggerFault(parts, db, automation)
  if (trigger !== undefined) addFault(null, 'invalid_trigger', trigger)
  const found = reachable(steps)
  for (const step of steps) {
    const fault = await STEP_TYPE[step.type].findFault(step.config, { db, parts, automation })
    if (fault !== undefined) addFault(step, 'invalid_step', fault)
    const missing = branchesOf(step).find(id => id !== END && !steps.some(one => one.id === id))
    if (missing !== undefined) add(step, 'missing_step', `leads to a step that does not exist: ${missing}`)
    if (!found.has(step)) add(step, 'unreachable_step', 'is never reached', true)
  }
  const looping = findLoop(steps)
  if (looping) add(looping, 'loop', 'leads into a loop without a delay or wait')
  if (steps.length === 0) add(null, 'no_steps', 'the automation has no steps', true)
  return problems
}

export function nameOf({ position, type, id }: Step): string {
  return `step ${position + 1} (${type}, ${id})`
}

/** Depth-first search for a cycle of steps without a delay or wait. */
function findLoop(steps: readonly Step[]): Step | undefined {
  const finished = new Set<Step>()
  const trail = new Set<Step>()
  const walk = (step: Step): Step | undefined => {
    if (trail.has(step)) return step
    if (finished.has(step)) return undefined
    trail.add(step)
    for (const next of immediateSuccessors(step, steps)) {
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
function immediateSuccessors(step: Step, steps: readonly Step[]): Step[] {
  if (STEP_TYPE[step.type].waits === true) return []
  return pathsOf(step, steps).flatMap(({ to }) => to ?? [])
}

/** @returns what is wrong, completing "the trigger ..."; undefined if nothing is */
export async function findTriggerFault(
  parts: Pick<FlowParts, 'hasCampaign'>,
  db: Queries,
  { workspaceId, triggerType, triggerConfig }: Automation,
): Promise<FlowFault | undefined> {
  const idIn = (field: string) => {
    const value = triggerConfig[field]
    return typeof value === 'string' ? value.trim() : ''
  }
  switch (triggerType) {
    case 'list_joined':
    case 'list_left': {
      const id = idIn('listId')
      if (id === '') return missing('listId')
      const list = isUuid(id) ? await findList(db, workspaceId, id) : undefined
      if (!list) return unknown('listId', 'a list')
      return list.type === 'static'
        ? undefined
        : {
            reason: 'dynamic_list',
            field: 'listId',
            text: 'refers to a dynamic list, which contacts do not join; use a segment with its conditions',
          }
    }
    case 'tag_added':
    case 'tag_removed':
      return idIn('tagName') === '' ? missing('tagName') : undefined
    case 'segment_entered': {
      const id = idIn('segmentId')
      if (id === '') return missing('segmentId')
      return isUuid(id) && (await findSegment(db, workspaceId, id))
        ? undefined
        : unknown('segmentId', 'a segment')
    }
    case 'form_submitted': {
      const id = idIn('formId')
      if (id === '' || (isUuid(id) && (await findForm(db, workspaceId, id)))) return undefined
      return unknown('formId', 'a form', id)
    }
    case 'email_opened':
    case 'email_clicked': {
      const [campaign, template] = [idIn('campaignId'), idIn('templateId')]
      if (campaign !== '' && !(isUuid(campaign) && (await parts.hasCampaign(db, workspaceId, campaign))))
        return unknown('campaignId', 'a campaign', campaign)
      if (template !== '' && !(await hasTemplate(db, workspaceId, template)))
        return unknown('templateId', 'a template', template)
      return undefined
    }
    case 'date':
      return idIn('field') === '' ? missing('field') : undefined
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
