/**
 * Adds, changes, moves and deletes steps of an automation, in the transaction of whoever calls. Positions stay without gaps.
 *
 * Runs that are under way go on by what stands there when they come to it; a deleted step leads them to the one after it. Whether
 * what a step names is there is asked when the automation becomes active. Fails: AppError validation_error, not_found, limit_reached.
 */
import { refusal } from '../../audience/checks.js'
import { AppError } from '../../core/errors.js'
import type { NewId } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { readConfig } from '../steps/config-fields.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { MOST_STEPS, type Config, type NewStep, type Step, type StepTypeName } from './automation.js'
import { branchesOf } from './check-flow.js'
import { findSteps, insertSteps, markStepDeleted, updateStep } from './step-store.js'
import { withKeptSecrets } from '../steps/webhook-secrets.js'

type Said = Readonly<Record<string, unknown>>

export interface FirstStep {
  /** What other steps of the request call it. */
  readonly id?: string
  readonly step_type: StepTypeName
  readonly config?: Said
  readonly position?: number
}

/** Steps of a new automation, in their order, each with an id of its own. */
export function readFirstSteps(said: readonly FirstStep[], newId: NewId): NewStep[] {
  const ids = new Map<string, string>()
  const read = said.map(({ id: name, step_type: type, config = {}, position }, at) => {
    const id = newId()
    if (name !== undefined) {
      if (ids.has(name.toLowerCase())) throw refusal(`steps.${at}.id`, `two steps have the id ${name}`)
      ids.set(name.toLowerCase(), id)
    }
    const path = `steps.${at}.config`
    return {
      id,
      type,
      position,
      config: readConfig(STEP_TYPE[type].fields, withKeptSecrets(config, undefined, path), path),
    }
  })
  return arranged(read).map(({ id, type, config }, position) => ({
    id,
    type,
    position,
    config: renamed({ type, config }, ids),
  }))
}

/** The same steps for another automation, with ids of their own; branches lead to the copies. */
export function copySteps(steps: readonly Step[], newId: NewId): NewStep[] {
  const ids = new Map(steps.map(({ id }) => [id, newId()]))
  return steps.map(({ id, type, position, config }) => ({
    id: ids.get(id) ?? newId(),
    type,
    position,
    config: renamed({ type, config }, ids),
  }))
}

/** With other ids of steps in place of these. */
function renamed({ type, config }: Pick<Step, 'type' | 'config'>, ids: ReadonlyMap<string, string>): Config {
  const changed: Record<string, unknown> = { ...config }
  for (const field of STEP_TYPE[type].branches ?? []) {
    const id = config[field]
    if (typeof id === 'string') changed[field] = ids.get(id) ?? id
  }
  return changed
}

/** Those with a position at it, the others in their order around them. */
function arranged<T extends { readonly position: number | undefined }>(steps: readonly T[]): T[] {
  const order = steps.filter(({ position }) => position === undefined)
  const placed = steps.filter(({ position }) => position !== undefined)
  for (const step of placed.sort((a, b) => (a.position ?? 0) - (b.position ?? 0)))
    order.splice(step.position ?? order.length, 0, step)
  return order
}

/** @returns the new step */
export async function addStep(db: Queries, automation: number, said: FirstStep, newId: NewId): Promise<Step> {
  const steps = await findSteps(db, automation)
  if (steps.length >= MOST_STEPS)
    throw new AppError('limit_reached', `an automation has at most ${MOST_STEPS} steps`)
  const { step_type: type, config = {}, position = steps.length } = said
  const id = newId()
  const step = {
    id,
    type,
    config: readConfig(STEP_TYPE[type].fields, withKeptSecrets(config, undefined, 'config'), 'config'),
  }
  const at = Math.min(position, steps.length)
  await insertSteps(db, automation, [{ ...step, position: at }])
  await renumber(db, [...steps.slice(0, at), undefined, ...steps.slice(at)])
  return mustFindStep(await findSteps(db, automation), id)
}

export interface StepChange {
  readonly id: string
  readonly step_type?: StepTypeName
  readonly config?: Said
  readonly position?: number
}

/**
 * All or nothing.
 *
 * @param pathOf of the step at this place in the request @returns all steps, in their order
 */
export async function changeSteps(
  db: Queries,
  automation: number,
  changes: readonly StepChange[],
  pathOf: (at: number) => string,
): Promise<Step[]> {
  const steps = await findSteps(db, automation)
  const positions = new Map<string, number>()
  for (const [at, change] of changes.entries()) {
    const step = mustFindStep(steps, change.id)
    const path = pathOf(at)
    if (changes.some((other, before) => before < at && other.id.toLowerCase() === step.id))
      throw refusal(`${path}id`, 'a step stands there twice')
    if (change.position !== undefined) positions.set(step.id, change.position)
    const { type, config } = changed(step, change, path)
    if (type !== step.type || config !== step.config) await updateStep(db, step.seq, { type, config })
  }
  if (positions.size > 0)
    await renumber(db, arranged(steps.map(step => ({ ...step, position: positions.get(step.id) }))), steps)
  return findSteps(db, automation)
}

/** A step of another type begins with the defaults of that. */
function changed(step: Step, { step_type: type = step.type, config }: StepChange, path: string) {
  if (type === step.type && config === undefined) return step
  const { fields } = STEP_TYPE[type]
  const before = type === step.type ? step.config : undefined
  const said = withKeptSecrets(config ?? {}, before, `${path}config`)
  return { type, config: readConfig(fields, said, `${path}config`, before) }
}

/** What led to it leads to the one after it. */
export async function removeStep(db: Queries, automation: number, id: string, now: number): Promise<void> {
  const steps = await findSteps(db, automation)
  const step = mustFindStep(steps, id)
  const successor = steps[step.position + 1]
  await markStepDeleted(db, step.seq, successor?.seq ?? null, now)
  const left = steps.filter(one => one !== step)
  for (const other of left)
    if (successor && branchesOf(other).includes(step.id))
      await updateStep(db, other.seq, { config: renamed(other, new Map([[step.id, successor.id]])) })
  await renumber(db, left)
}

type Placed = Pick<Step, 'id' | 'seq'>

/** @param order with a gap where one stands that has its position already @param before with the positions they have */
async function renumber(
  db: Queries,
  order: readonly (Placed | undefined)[],
  before: readonly Step[] = order.filter((one): one is Step => one !== undefined),
): Promise<void> {
  for (const [position, step] of order.entries()) {
    const known = step && before.find(({ seq }) => seq === step.seq)
    if (step && known?.position !== position) await updateStep(db, step.seq, { position })
  }
}

/** @throws AppError not_found */
export function mustFindStep(steps: readonly Step[], id: string): Step {
  const step = steps.find(one => one.id === id.toLowerCase())
  if (!step) throw new AppError('not_found', 'the automation has no such step')
  return step
}
