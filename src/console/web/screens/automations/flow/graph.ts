/**
 * A flow as it is drawn: steps by key, each with the ways out of it. Immutable and pure.
 *
 * The API has a list, in which a step leads to the one after it unless it names another, or `end`. The order of that list means nothing
 * here: it is made anew from the ways.
 */
import type { components } from '#api/rest'

export type Automation = components['schemas']['Automation']
export type ApiStep = components['schemas']['AutomationStep']
export type StepType = ApiStep['step_type']
export type TriggerType = Automation['trigger_type']
export type Config = Readonly<Record<string, unknown>>
export type PathName = 'next' | 'yes' | 'no' | 'event' | 'timeout'

/** Key of a step; null: the run ends. */
export type Target = string | null

export interface FlowStep {
  readonly key: string
  readonly type: StepType
  /** Without the fields that name other steps. */
  readonly config: Config
  readonly out: Readonly<Partial<Record<PathName, Target>>>
}

export interface Flow {
  readonly trigger: { readonly type: TriggerType; readonly config: Config }
  readonly first: Target
  readonly steps: Readonly<Record<string, FlowStep>>
}

/** A way out of a step, or of the trigger if `from` is null. */
export interface Way {
  readonly from: string | null
  readonly path: PathName
}

export const MAX_STEPS = 200
const END = 'end'
const LEADING = ['nextStepId', 'trueBranchStepId', 'falseBranchStepId', 'timeoutAction', 'timeoutBranch']

/** Ways out of the step, the main one first. */
export function pathsOf({ type, config }: Pick<FlowStep, 'type' | 'config'>): readonly PathName[] {
  if (type === 'condition') return ['yes', 'no']
  if (type === 'wait_for_event') return ['event', 'timeout']
  return type === 'move_to_flow' && config['exitCurrentFlow'] !== false ? [] : ['next']
}

export function targetOf(flow: Flow, { from, path }: Way): Target {
  return from === null ? flow.first : (flow.steps[from]?.out[path] ?? null)
}

/** All ways of the flow, the trigger's included. */
export function waysOf(flow: Flow): Way[] {
  return [
    { from: null, path: 'next' },
    ...Object.values(flow.steps).flatMap(step => pathsOf(step).map(path => ({ from: step.key, path }))),
  ]
}

export function fromApi(automation: Automation): Flow {
  const { steps } = automation
  const has = (id: unknown): id is string => typeof id === 'string' && steps.some(step => step.id === id)
  const read = (step: ApiStep, at: number): FlowStep => {
    const given: Config = step.config
    const after = (count: number): Target => steps[at + count]?.id ?? null
    // A step that is not there is drawn as the end; the check tells.
    const to = (field: string): Target => {
      const id = given[field]
      if (typeof id !== 'string') return after(1)
      return has(id) ? id : null
    }
    const config = Object.fromEntries(Object.entries(given).filter(([name]) => !LEADING.includes(name)))
    const about = { key: step.id, type: step.step_type, config }
    if (step.step_type === 'condition')
      return { ...about, out: { yes: to('trueBranchStepId'), no: to('falseBranchStepId') } }
    if (step.step_type !== 'wait_for_event') return { ...about, out: { next: to('nextStepId') } }
    const event = to('nextStepId')
    const action = given['timeoutAction']
    const timeout = action === 'skip' ? after(2) : action === 'branch' ? to('timeoutBranch') : event
    return { ...about, out: { event, timeout } }
  }
  return {
    trigger: { type: automation.trigger_type, config: automation.trigger_config },
    first: steps[0]?.id ?? null,
    steps: Object.fromEntries(steps.map((step, at) => [step.id, read(step, at)])),
  }
}

export interface WrittenStep {
  readonly id: string
  readonly step_type: StepType
  readonly config: Config
}

/** @param idOf what the API calls the step @returns the steps in the order of `orderOf` */
export function toApi(flow: Flow, idOf: (key: string) => string): WrittenStep[] {
  const order = orderOf(flow)
  return order.map((key, at) => {
    const step = flow.steps[key]
    if (!step) throw new Error('the order names steps of the flow')
    const { type, out } = step
    const following = order[at + 1] ?? null
    const idTo = (target: Target): string => (target === null ? END : idOf(target))
    const unlessNext = (target: Target = null): string | null => (target === following ? null : idTo(target))
    const next = (target: Target = null) => (target === following ? {} : { nextStepId: idTo(target) })
    const config = { ...step.config }
    if (type === 'condition')
      Object.assign(config, {
        trueBranchStepId: unlessNext(out.yes),
        falseBranchStepId: unlessNext(out.no),
      })
    else if (type === 'wait_for_event') {
      const { event = null, timeout = null } = out
      Object.assign(config, next(event))
      Object.assign(
        config,
        timeout === event
          ? { timeoutAction: 'continue', timeoutBranch: null }
          : { timeoutAction: 'branch', timeoutBranch: idTo(timeout) },
      )
    } else if (pathsOf(step).length > 0) Object.assign(config, next(out.next))
    return { id: idOf(key), step_type: type, config }
  })
}

/** Keys as a reader goes through the flow: both branches, then what they lead to; at the end those that are never reached. */
export function orderOf(flow: Flow): string[] {
  const order = new Set<string>()
  const visit = (start: Target, stops: ReadonlySet<string>): void => {
    for (let key = start; key !== null && !order.has(key) && !stops.has(key);) {
      const step: FlowStep | undefined = flow.steps[key]
      if (!step) return
      order.add(key)
      const targets = pathsOf(step).map(path => step.out[path] ?? null)
      const [main = null, other] = targets
      if (other === undefined) {
        key = main
        continue
      }
      const join = joinOf(flow, main, other, order)
      const inner = join === null ? stops : new Set([...stops, join])
      visit(main, inner)
      visit(other, inner)
      key = join
    }
  }
  visit(flow.first, new Set())
  for (const key of Object.keys(flow.steps)) visit(key, new Set())
  return [...order]
}

/** The first step that both lead to, unless it stands earlier. @param earlier steps before the branch */
export function joinOf(flow: Flow, one: Target, other: Target, earlier: ReadonlySet<string>): Target {
  const fromOther = reachableFrom(flow, other)
  const seen = new Set<string>()
  const open = [one]
  for (let key = open.shift(); key !== undefined; key = open.shift()) {
    if (key === null || seen.has(key) || earlier.has(key)) continue
    seen.add(key)
    if (fromOther.has(key)) return key
    const step = flow.steps[key]
    if (step) for (const path of pathsOf(step)) open.push(step.out[path] ?? null)
  }
  return null
}

export function reachableFrom(flow: Flow, start: Target): Set<string> {
  const found = new Set<string>()
  const open = [start]
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    const step = key === null ? undefined : flow.steps[key]
    if (key === null || !step || found.has(key)) continue
    found.add(key)
    for (const path of pathsOf(step)) open.push(step.out[path] ?? null)
  }
  return found
}

export function lead(flow: Flow, { from, path }: Way, to: Target): Flow {
  if (from === null) return { ...flow, first: to }
  const step = flow.steps[from]
  if (!step) return flow
  return { ...flow, steps: { ...flow.steps, [from]: { ...step, out: { ...step.out, [path]: to } } } }
}

/** Puts a new step into a way; all ways out of it lead where the way led. */
export function insert(flow: Flow, way: Way, step: Omit<FlowStep, 'out'>): Flow {
  const to = targetOf(flow, way)
  const names: readonly PathName[] = step.type === 'move_to_flow' ? ['next'] : pathsOf(step)
  const out = Object.fromEntries(names.map(path => [path, to]))
  return lead({ ...flow, steps: { ...flow.steps, [step.key]: { ...step, out } } }, way, step.key)
}

export function configure(flow: Flow, key: string, config: Config): Flow {
  const step = flow.steps[key]
  return step ? { ...flow, steps: { ...flow.steps, [key]: { ...step, config } } } : flow
}

/** Ways to the step lead on along its main way. Steps that only it led to go as well. */
export function remove(flow: Flow, key: string): Flow {
  const step = flow.steps[key]
  if (!step) return flow
  const before = reachableFrom(flow, flow.first)
  const [main = 'next'] = pathsOf(step)
  const to = step.out[main] === key ? null : (step.out[main] ?? null)
  const left = bypass(flow, key, to)
  const after = reachableFrom(left, left.first)
  const steps = Object.entries(left.steps).filter(
    ([one]) => one !== key && (after.has(one) || !before.has(one)),
  )
  return { ...left, steps: Object.fromEntries(steps) }
}

function bypass(flow: Flow, key: string, to: Target): Flow {
  return waysOf(flow)
    .filter(way => way.from !== key && targetOf(flow, way) === key)
    .reduce((changed, way) => lead(changed, way, to), flow)
}

/** Exchanges a step with the one after it, if neither branches. @returns undefined if that cannot be done */
export function moveDown(flow: Flow, key: string): Flow | undefined {
  const step = flow.steps[key]
  const after = step?.out.next
  const other = after === null || after === undefined ? undefined : flow.steps[after]
  if (!step || !other || other.key === key || pathsOf(step).length !== 1 || pathsOf(other).length !== 1)
    return undefined
  if (entries(flow, other.key).length !== 1) return undefined
  const beyond = other.out.next ?? null
  let changed = bypass(flow, key, other.key)
  changed = lead(changed, { from: other.key, path: 'next' }, key)
  return lead(changed, { from: key, path: 'next' }, beyond === key ? null : beyond)
}

export function moveUp(flow: Flow, key: string): Flow | undefined {
  const [way, another] = entries(flow, key)
  const before = way?.from ?? null
  return before === null || another ? undefined : moveDown(flow, before)
}

/** Ways that lead to the step. */
function entries(flow: Flow, key: string): Way[] {
  return waysOf(flow).filter(way => targetOf(flow, way) === key)
}

/** A copy of the step, put after it. */
export function duplicate(flow: Flow, key: string, newKey: string): Flow {
  const step = flow.steps[key]
  const [path] = step ? pathsOf(step) : []
  if (!step || path === undefined) return flow
  return insert(flow, { from: key, path }, { key: newKey, type: step.type, config: step.config })
}

const DEFAULTS: Readonly<Record<StepType, Config>> = {
  email: { templateId: null, subject: '', previewText: '' },
  delay: { duration: 1, unit: 'days' },
  condition: { field: '', operator: 'equals', value: '' },
  tag: { action: 'add', tagName: '' },
  add_to_list: { listId: null },
  remove_from_list: { listId: null },
  update_attribute: { attributeName: '', attributeValue: '' },
  webhook: { url: '', method: 'POST', headers: {} },
  wait_for_event: { eventType: 'email_opened', timeoutDays: 7 },
  move_to_flow: { targetFlowId: '', exitCurrentFlow: true },
}

/** @param isLast whether nothing follows it: only then does moving to another automation end this one */
export function newStep(type: StepType, key: string, isLast: boolean): Omit<FlowStep, 'out'> {
  const config = DEFAULTS[type]
  return { key, type, config: type === 'move_to_flow' ? { ...config, exitCurrentFlow: isLast } : config }
}
