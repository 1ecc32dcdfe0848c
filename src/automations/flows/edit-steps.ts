/**
 * Adds, updates, moves and deletes steps within the caller's transaction. Positions stay without gaps.
 *
 * Running automations see edits at each run's next step; runs at a deleted step move to its successor. References are checked only at
 * activation. Throws AppError validation_error, not_found, limit_reached.
 */
import { refusal } from '../../audience/checks.js'
import { AppError } from '../../core/errors.js'
import type { NewId } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { readConfig } from '../steps/config-fields.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { MAX_STEPS, type Config, type NewStep, type Step, type StepTypeName } from './automation.js'
import { branchesOf } from './paths.js'
import { findSteps, insertSteps, markStepDeleted, updateStep } from './step-store.js'
import { restoreSecrets } from '../steps/webhook.js'

type Input = Readonly<Record<string, unknown>>

export interface FirstStep {
  /** Chosen by the client, for branches of other steps in the request. */
  readonly id?: string
  readonly step_type: StepTypeName
  readonly config?: Input
  readonly position?: number
}

export function readNewSteps(input: readonly FirstStep[], newId: NewId): NewStep[] {
  const ids = new Map<string, string>()
  const read = input.map(({ id: alias, step_type: type, config = {}, position }, at) => {
    const id = newId()
    if (alias !== undefined) {
      if (ids.has(alias.toLowerCase())) throw refusal(`steps.${at}.id`, `two steps have the id ${alias}`)
      ids.set(alias.toLowerCase(), id)
    }
    const path = `steps.${at}.config`
    return {
      id,
      type,
      position,
      config: readConfig(STEP_TYPE[type].fields, restoreSecrets(config, undefined, path), path),
    }
  })
  return ordered(read).map(({ id, type, config }, position) => ({
    id,
    type,
    position,
    config: withBranchIds({ type, config }, ids),
  }))
}

/** Copies steps for another automation, with new ids; branches lead to the copies. */
export function copySteps(steps: readonly Step[], newId: NewId): NewStep[] {
  const ids = new Map(steps.map(({ id }) => [id, newId()]))
  return steps.map(({ id, type, position, config }) => ({
    id: ids.get(id) ?? newId(),
    type,
    position,
    config: withBranchIds({ type, config }, ids),
  }))
}

export function withBranchIds(
  { type, config }: Pick<Step, 'type' | 'config'>,
  ids: ReadonlyMap<string, string>,
): Config {
  const changed: Record<string, unknown> = { ...config }
  for (const field of STEP_TYPE[type].branches ?? []) {
    const id = config[field]
    if (typeof id === 'string') changed[field] = ids.get(id) ?? id
  }
  return changed
}

/** Places steps with a position there; the others keep their order around them. */
function ordered<T extends { readonly position: number | undefined }>(steps: readonly T[]): T[] {
  const order = steps.filter(({ position }) => position === undefined)
  const placed = steps.filter(({ position }) => position !== undefined)
  for (const step of placed.sort((a, b) => (a.position ?? 0) - (b.position ?? 0)))
    order.splice(step.position ?? order.length, 0, step)
  return order
}

export async function addStep(
  db: Queries,
  automation: number,
  input: FirstStep,
  newId: NewId,
): Promise<Step> {
  const steps = await findSteps(db, automation)
  if (steps.length >= MAX_STEPS)
    throw new AppError('limit_reached', `an automation has at most ${MAX_STEPS} steps`)
  const { step_type: type, config = {}, position = steps.length } = input
  const id = newId()
  const step = {
    id,
    type,
    config: readConfig(STEP_TYPE[type].fields, restoreSecrets(config, undefined, 'config'), 'config'),
  }
  const at = Math.min(position, steps.length)
  await insertSteps(db, automation, [{ ...step, position: at }])
  await renumber(db, [...steps.slice(0, at), undefined, ...steps.slice(at)])
  return getStep(await findSteps(db, automation), id)
}

export interface StepChange {
  readonly id: string
  readonly step_type?: StepTypeName
  readonly config?: Input
  readonly position?: number
}

/** @param pathOf request path of the step at this index @returns all steps in order */
export async function changeSteps(
  db: Queries,
  automation: number,
  changes: readonly StepChange[],
  pathOf: (at: number) => string,
): Promise<Step[]> {
  const steps = await findSteps(db, automation)
  const positions = new Map<string, number>()
  for (const [at, change] of changes.entries()) {
    const step = getStep(steps, change.id)
    const path = pathOf(at)
    if (changes.some((other, before) => before < at && other.id.toLowerCase() === step.id))
      throw refusal(`${path}id`, `step ${change.id} is listed twice`)
    if (change.position !== undefined) positions.set(step.id, change.position)
    const { type, config } = changedStep(step, change, path)
    if (type !== step.type || config !== step.config) await updateStep(db, step.seq, { type, config })
  }
  if (positions.size > 0)
    await renumber(db, ordered(steps.map(step => ({ ...step, position: positions.get(step.id) }))), steps)
  return findSteps(db, automation)
}

/** A step that changes its type starts with the defaults of the new type. */
function changedStep(step: Step, { step_type: type = step.type, config }: StepChange, path: string) {
  if (type === step.type && config === undefined) return step
  const { fields } = STEP_TYPE[type]
  const before = type === step.type ? step.config : undefined
  const input = restoreSecrets(config ?? {}, before, `${path}config`)
  return { type, config: readConfig(fields, input, `${path}config`, before) }
}

/** Branches to the step are redirected to its successor. */
export async function removeStep(db: Queries, automation: number, id: string, now: number): Promise<void> {
  const steps = await findSteps(db, automation)
  const step = getStep(steps, id)
  const successor = steps[step.position + 1]
  await markStepDeleted(db, step.seq, successor?.seq ?? null, now)
  const left = steps.filter(one => one !== step)
  for (const other of left)
    if (successor && branchesOf(other).includes(step.id))
      await updateStep(db, other.seq, { config: withBranchIds(other, new Map([[step.id, successor.id]])) })
  await renumber(db, left)
}

type StepKey = Pick<Step, 'id' | 'seq'>

/** @param order undefined stands for a step that already has that position @param before steps with their current positions */
async function renumber(
  db: Queries,
  order: readonly (StepKey | undefined)[],
  before: readonly Step[] = order.filter((one): one is Step => one !== undefined),
): Promise<void> {
  for (const [position, step] of order.entries()) {
    const known = step && before.find(({ seq }) => seq === step.seq)
    if (step && known?.position !== position) await updateStep(db, step.seq, { position })
  }
}

/** @throws AppError not_found */
export function getStep(steps: readonly Step[], id: string): Step {
  const step = steps.find(one => one.id === id.toLowerCase())
  if (!step) throw new AppError('not_found', `the automation has no step ${id}`)
  return step
}
