/**
 * Replaces name, trigger and steps of an automation at once, as an editor saves them; or reads such a flow without saving it, for checks.
 *
 * Steps whose id is known stay the same step, so runs stay at them; others are new; the rest is deleted, and their runs continue where
 * the deleted step led to. A flow with faults can be saved, but not into an active automation.
 * Throws AppError validation_error, not_found, conflict, precondition_failed.
 */
import { isDeepStrictEqual } from 'node:util'
import { refusal } from '../../audience/checks.js'
import { AppError } from '../../core/errors.js'
import { readName } from '../../core/names.js'
import type { NewId } from '../../core/ids.js'
import type { Tx } from '../../db/database.js'
import { settingsChanges } from '../../events/settings-changes.js'
import type { Precondition } from '../../http/preconditions.js'
import type { FlowParts } from '../automation-parts.js'
import { readConfig } from '../steps/config-fields.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { restoreSecrets } from '../steps/webhook.js'
import type { Automation, Step, StepTypeName, TriggerType } from './automation.js'
import { raiseVersion, updateAutomation } from './automation-store.js'
import {
  checkTrigger,
  getFlow,
  getUnchanged,
  recordFlowChange,
  settingsOf,
  type Owner,
  type WithSteps,
} from './automations.js'
import { findFlowFault } from './check-flow.js'
import { withBranchIds } from './edit-steps.js'
import { pathsOf } from './paths.js'
import { findSteps, insertSteps, markStepDeleted, updateStep } from './step-store.js'
import { readTriggerConfig } from './trigger-fields.js'

type Input = Readonly<Record<string, unknown>>

export interface WrittenStep {
  /** Of a step of the automation; any other text stands for a new step. */
  readonly id: string
  readonly step_type: StepTypeName
  readonly config?: Input
}

export interface WrittenFlow {
  readonly name?: string
  readonly triggerType?: TriggerType
  readonly triggerConfig?: Input
  readonly steps?: readonly WrittenStep[]
}

export interface ReadFlow {
  readonly automation: Automation
  /** New ones have a negative `seq`. */
  readonly steps: readonly Step[]
}

/** The automation after the replacement. Omitted parts stay as they are stored. */
export function readFlow(
  stored: Automation,
  storedSteps: readonly Step[],
  { name, triggerType = stored.triggerType, triggerConfig, steps }: WrittenFlow,
  newId: NewId,
): ReadFlow {
  const isSameType = triggerType === stored.triggerType
  const config = triggerConfig ?? (isSameType ? stored.triggerConfig : {})
  return {
    automation: {
      ...stored,
      name: name === undefined ? stored.name : readName(name),
      triggerType,
      triggerConfig: readTriggerConfig(triggerType, config),
    },
    steps: steps === undefined ? storedSteps : readSteps(storedSteps, steps, newId),
  }
}

function readSteps(stored: readonly Step[], written: readonly WrittenStep[], newId: NewId): Step[] {
  const ids = new Map<string, string>()
  const steps = written.map(({ id: given, step_type: type, config = {} }, position): Step => {
    const alias = given.toLowerCase()
    if (ids.has(alias)) throw refusal(`steps.${position}.id`, `two steps have the id ${given}`)
    const known = stored.find(({ id }) => id === alias)
    const id = known?.id ?? newId()
    ids.set(alias, id)
    const path = `steps.${position}.config`
    const before = known?.type === type ? known.config : undefined
    const read = readConfig(STEP_TYPE[type].fields, restoreSecrets(config, before, path), path)
    return { seq: known?.seq ?? -1 - position, id, position, type, config: read }
  })
  return steps.map(step => ({ ...step, config: withBranchIds(step, ids) }))
}

export async function replaceFlow(
  parts: FlowParts,
  owner: Owner,
  id: string,
  written: WrittenFlow,
  precondition?: Precondition,
): Promise<WithSteps> {
  return parts.database.write(async tx => {
    const before = await getUnchanged(tx.db, owner.workspaceId, id, precondition)
    const stored = await findSteps(tx.db, before.seq)
    const { automation, steps } = readFlow(before, stored, written, parts.newId)
    const isSameTrigger =
      automation.triggerType === before.triggerType &&
      isDeepStrictEqual(automation.triggerConfig, before.triggerConfig)
    if (!isSameTrigger) {
      if (before.status === 'active')
        throw new AppError(
          'conflict',
          'the trigger of an active automation cannot be changed; pause the automation first',
        )
      await checkTrigger(tx, owner.workspaceId, automation.triggerConfig)
    }
    const now = parts.clock.now()
    const areSameSteps = isDeepStrictEqual(steps, stored)
    if (automation.name !== before.name || !isSameTrigger)
      await updateAutomation(tx.db, before.seq, { ...automation, updatedAt: now })
    if (!areSameSteps) await storeSteps(tx, before.seq, stored, steps, now)
    if (!areSameSteps || !isSameTrigger) await raiseVersion(tx.db, before.seq, now)
    const changes = settingsChanges(settingsOf(before), settingsOf(automation))
    if (!areSameSteps || Object.keys(changes).length > 0)
      await recordFlowChange(tx, owner, now, automation, {
        changes,
        details: areSameSteps ? {} : { steps: 'replaced' },
      })
    const fault = before.status === 'active' ? await findFlowFault(parts, tx.db, automation) : undefined
    if (fault !== undefined) throw new AppError('conflict', `the automation is active: ${fault}`)
    tx.onCommit(parts.wakeRunner)
    return getFlow(tx.db, owner.workspaceId, id)
  })
}

async function storeSteps(
  { db }: Tx,
  automation: number,
  before: readonly Step[],
  after: readonly Step[],
  now: number,
): Promise<void> {
  for (const step of before)
    if (!after.some(({ seq }) => seq === step.seq))
      await markStepDeleted(db, step.seq, successorOf(step, before, after), now)
  for (const step of after) {
    const known = before.find(({ seq }) => seq === step.seq)
    if (known && !isDeepStrictEqual(known, step)) await updateStep(db, step.seq, step)
  }
  const added = after.filter(({ seq }) => seq < 0)
  await insertSteps(db, automation, added)
}

/** The first step that stays on the way the deleted step led to. */
function successorOf(deleted: Step, before: readonly Step[], after: readonly Step[]): number | null {
  const seen = new Set<Step>([deleted])
  let next = pathsOf(deleted, before)[0]?.to
  while (next && !seen.has(next)) {
    const { seq } = next
    if (after.some(step => step.seq === seq)) return seq
    seen.add(next)
    next = pathsOf(next, before)[0]?.to
  }
  return null
}
