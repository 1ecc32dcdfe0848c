/**
 * Where each step of an automation leads.
 *
 * A step leads to the one after it unless its config says otherwise: branches of a condition, the timeout of a wait, and `nextStepId` of
 * the others. `end` instead of an id ends the run. Pure.
 */
import { STEP_TYPE } from '../steps/step-types.js'
import type { Step } from './automation.js'
import type { PathName } from './path-name.js'

/** In place of a step's id: the run is over. */
export const END = 'end'

export interface Path {
  readonly name: PathName
  /** Undefined: the run ends. */
  readonly to: Step | undefined
  /** The id it names is of no step. */
  readonly missing?: string
}

type Written = Pick<Step, 'type' | 'config'>

/** Ids of steps, or END, that the step's config names. */
export function branchesOf({ type, config }: Written): string[] {
  return (STEP_TYPE[type].branches ?? []).flatMap(field => {
    const id = config[field]
    return typeof id === 'string' ? [id] : []
  })
}

/** Ways out of the step; none if it always ends the run. */
export function pathsOf(step: Step, steps: readonly Step[]): Path[] {
  const { type, config, position } = step
  const after = (count: number) => steps[position + count]
  const to = (name: PathName, field: string, otherwise = after(1)): Path => {
    const id = config[field]
    if (typeof id !== 'string') return { name, to: otherwise }
    if (id === END) return { name, to: undefined }
    const found = steps.find(one => one.id === id)
    return { name, to: found, ...(found ? {} : { missing: id }) }
  }
  switch (type) {
    case 'condition':
      return [to('yes', 'trueBranchStepId'), to('no', 'falseBranchStepId')]
    case 'wait_for_event': {
      const event = to('event', 'nextStepId')
      if (config['timeoutAction'] === 'skip') return [event, { name: 'timeout', to: after(2) }]
      if (config['timeoutAction'] === 'branch') return [event, to('timeout', 'timeoutBranch')]
      return [event, { ...event, name: 'timeout' }]
    }
    case 'move_to_flow':
      return config['exitCurrentFlow'] === false ? [to('next', 'nextStepId')] : []
    default:
      return [to('next', 'nextStepId')]
  }
}

/** Steps that a run can come to from the first one. */
export function reachable(steps: readonly Step[]): ReadonlySet<Step> {
  const found = new Set<Step>()
  const open = steps.slice(0, 1)
  for (let step = open.pop(); step; step = open.pop()) {
    if (found.has(step)) continue
    found.add(step)
    for (const { to } of pathsOf(step, steps)) if (to) open.push(to)
  }
  return found
}
