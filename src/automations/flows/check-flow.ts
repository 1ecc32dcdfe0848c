/**
 * What an automation lacks before it can be active: things that it names and that are not there, and loops that take no time.
 *
 * Called when it becomes active. Steps are told of by their place, from 1, and type. Fails: as the database does.
 */
import type { FlowParts } from '../automation-parts.js'
import { STEP_TYPE } from '../steps/step-types.js'
import type { Queries } from '../../db/database.js'
import type { Automation, Step } from './automation.js'
import { findTriggerFault } from './check-trigger.js'
import { findSteps } from './step-store.js'

/** @returns a sentence; undefined where nothing is missing */
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
    if (missing !== undefined) return `${nameOf(step)} leads to a step that is not there: ${missing}`
  }
  const looping = findLoop(steps)
  return looping && `${nameOf(looping)} leads into a loop in which no time passes`
}

export function nameOf({ position, type, id }: Step): string {
  return `step ${position + 1} (${type}, ${id})`
}

/** Ids of the steps that it names. */
export function branchesOf({ type, config }: Pick<Step, 'type' | 'config'>): string[] {
  return (STEP_TYPE[type].branches ?? []).flatMap(field => {
    const id = config[field]
    return typeof id === 'string' ? [id] : []
  })
}

/** A step from which one comes back to itself without a delay or wait on the way. */
function findLoop(steps: readonly Step[]): Step | undefined {
  const byId = new Map(steps.map(step => [step.id, step]))
  const finished = new Set<Step>()
  const trail = new Set<Step>()
  const walk = (step: Step): Step | undefined => {
    if (trail.has(step)) return step
    if (finished.has(step)) return undefined
    trail.add(step)
    for (const next of nextOf(step, steps, byId)) {
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

/** Those that follow at once. */
function nextOf(step: Step, steps: readonly Step[], byId: ReadonlyMap<string, Step>): Step[] {
  if (STEP_TYPE[step.type].waits === true) return []
  const following = steps[step.position + 1]
  return [...branchesOf(step).map(id => byId.get(id)), following].filter(one => one !== undefined)
}
