/**
 * Creates, changes and deletes automations, each with an entry in the activity log.
 *
 * | from   | to      | condition and effect                                                       |
 * |--------|---------|----------------------------------------------------------------------------|
 * | draft  | active  | only if the flow has no fault; events before the activation start nothing  |
 * | active | paused  | starts no runs; its runs are parked                                        |
 * | paused | active  | as from draft; parked runs resume, overdue ones immediately                |
 * | any    | deleted | its runs are cancelled                                                     |
 *
 * Throws AppError not_found, conflict, validation_error, limit_reached.
 */
import { copyName, refuseMoreThan } from '../../audience/checks.js'
import { AppError } from '../../core/errors.js'
import { readName } from '../../core/names.js'
import { isUuid } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Actor } from '../../core/actor.js'
import { recordActivity, type Activity } from '../../events/activity-store.js'
import { settingsChanges } from '../../events/settings-changes.js'
import { etagOf, type Precondition } from '../../http/preconditions.js'
import type { References } from '../../resource/references.js'
import { checkConditions } from '../../audience/segments/rule-references.js'
import type { FlowParts } from '../automation-parts.js'
import { beginSegmentScan } from '../triggers/segment-trigger.js'
import {
  MAX_AUTOMATIONS,
  type Automation,
  type AutomationStatus,
  type NewStep,
  type Step,
  type TriggerType,
} from './automation.js'
import {
  countAutomations,
  findAutomation,
  insertAutomation,
  markActivated,
  markAutomationDeleted,
  raiseVersion,
  updateAutomation,
} from './automation-store.js'
import { findFlowFault } from './check-flow.js'
import { copySteps } from './edit-steps.js'
import { findSteps, insertSteps } from './step-store.js'
import { readTriggerConfig } from './trigger-fields.js'

export interface Owner {
  readonly workspaceId: string
  readonly isSandbox: boolean
  readonly actor: Actor
}

/** @throws AppError not_found */
export async function getAutomation(db: Queries, workspaceId: string, id: string): Promise<Automation> {
  const found = isUuid(id) ? await findAutomation(db, workspaceId, id.toLowerCase()) : undefined
  if (!found) throw new AppError('not_found', 'no such automation')
  return found
}

/** An automation as it was at some moment: an ETag of steps from another one would be of no flow that ever existed. */
export interface WithSteps {
  readonly automation: Automation
  readonly steps: readonly Step[]
}

/** @param db a transaction or snapshot @throws AppError not_found */
export async function getFlow(db: Queries, workspaceId: string, id: string): Promise<WithSteps> {
  const automation = await getAutomation(db, workspaceId, id)
  return { automation, steps: await findSteps(db, automation.seq) }
}

/** Covers everything but the run counts, which change all the time. */
export function automationEtag(automation: Automation, steps: readonly Step[]): string {
  const { id, name, status, triggerType, triggerConfig, activatedAt, updatedAt } = automation
  const flow = steps.map(step => [step.id, step.type, step.config, step.position])
  return etagOf(id, name, status, triggerType, triggerConfig, activatedAt, updatedAt, flow)
}

/** @throws AppError not_found, precondition_failed */
export async function getUnchanged(
  db: Queries,
  workspaceId: string,
  id: string,
  precondition: Precondition | undefined,
): Promise<Automation> {
  const automation = await getAutomation(db, workspaceId, id)
  if (precondition) precondition.check(automationEtag(automation, await findSteps(db, automation.seq)))
  return automation
}

type Input = Readonly<Record<string, unknown>>

export interface NewFlow {
  readonly name: string
  readonly triggerType: TriggerType
  readonly triggerConfig: Input
  readonly steps: readonly NewStep[]
}

export async function createAutomation(
  { database, clock, newId }: FlowParts,
  { workspaceId, isSandbox, actor }: Owner,
  { name: givenName, triggerType, triggerConfig, steps }: NewFlow,
): Promise<WithSteps> {
  const now = clock.now()
  const name = readName(givenName)
  const automation = {
    id: newId(),
    workspaceId,
    isSandbox,
    name,
    triggerType,
    status: 'draft' as const,
    triggerConfig: readTriggerConfig(triggerType, triggerConfig),
    createdAt: now,
    updatedAt: now,
  }
  return database.write(async tx => {
    await checkTrigger(tx, workspaceId, automation.triggerConfig)
    refuseMoreThan(MAX_AUTOMATIONS, await countAutomations(tx.db, workspaceId), 'automations')
    const seq = await insertAutomation(tx.db, automation)
    await insertSteps(tx.db, seq, steps)
    await recordActivity(tx, { workspaceId, actor }, now, { action: 'automation.created', subject: name })
    return getFlow(tx.db, workspaceId, automation.id)
  })
}

/**
 * Creates a draft with the same trigger and steps. References are checked when the copy is activated.
 *
 * @param givenName absent to derive it from the original's name
 */
export async function duplicateAutomation(
  { database, clock, newId }: FlowParts,
  { workspaceId, isSandbox, actor }: Owner,
  id: string,
  givenName: string | undefined,
): Promise<WithSteps> {
  const now = clock.now()
  return database.write(async tx => {
    const { seq, triggerType, triggerConfig, ...original } = await getAutomation(tx.db, workspaceId, id)
    refuseMoreThan(MAX_AUTOMATIONS, await countAutomations(tx.db, workspaceId), 'automations')
    const copy = {
      id: newId(),
      workspaceId,
      isSandbox,
      triggerType,
      triggerConfig,
      name: givenName === undefined ? copyName('Copy of', original.name) : readName(givenName),
      status: 'draft' as const,
      createdAt: now,
      updatedAt: now,
    }
    const copySeq = await insertAutomation(tx.db, copy)
    await insertSteps(tx.db, copySeq, copySteps(await findSteps(tx.db, seq), newId))
    await recordActivity(tx, { workspaceId, actor }, now, {
      action: 'automation.created',
      subject: copy.name,
    })
    return getFlow(tx.db, workspaceId, copy.id)
  })
}

/** @throws AppError validation_error if its conditions refer to an unknown list or tag */
export async function checkTrigger(
  { db }: Tx,
  workspaceId: string,
  { conditions }: Automation['triggerConfig'],
): Promise<void> {
  if (conditions) await checkConditions(db, workspaceId, conditions, { path: 'trigger_config.conditions' })
}

export interface FlowChanges {
  readonly name?: string
  readonly status?: AutomationStatus
  readonly triggerType?: TriggerType
  readonly triggerConfig?: Input
}

export async function changeAutomation(
  parts: FlowParts,
  owner: Owner,
  id: string,
  changes: FlowChanges,
  precondition?: Precondition,
): Promise<WithSteps> {
  const name = changes.name === undefined ? undefined : readName(changes.name)
  return parts.database.write(async tx => {
    const before = await getUnchanged(tx.db, owner.workspaceId, id, precondition)
    const after: Automation = {
      ...before,
      ...(name === undefined ? {} : { name }),
      ...changedTrigger(before, changes),
      updatedAt: parts.clock.now(),
    }
    if (changes.triggerConfig !== undefined) await checkTrigger(tx, owner.workspaceId, after.triggerConfig)
    await updateAutomation(tx.db, before.seq, after)
    if (changes.triggerConfig !== undefined || changes.triggerType !== undefined)
      await raiseVersion(tx.db, before.seq, after.updatedAt)
    const changed = settingsChanges(settingsOf(before), settingsOf(after))
    if (Object.keys(changed).length > 0)
      await recordFlowChange(tx, owner, after.updatedAt, after, { changes: changed })
    if (changes.status !== undefined) await changeStatus(parts, tx, owner, after, changes.status)
    return getFlow(tx.db, owner.workspaceId, id)
  })
}

/** Settings as the activity log shows them. Steps are not among them: they may contain secrets. */
export function settingsOf({ name, triggerType, triggerConfig }: Automation) {
  return { name, trigger_type: triggerType, trigger_config: triggerConfig }
}

export async function recordFlowChange(
  tx: Tx,
  owner: Owner,
  now: number,
  { id, name }: Automation,
  { details, changes = {} }: Pick<Activity, 'changes' | 'details'>,
): Promise<void> {
  await recordActivity(tx, owner, now, {
    action: 'automation.changed',
    subject: name,
    details: { id, ...details },
    changes,
  })
}

/** A trigger can only be changed while the automation is not active. */
function changedTrigger(
  before: Automation,
  { triggerType, triggerConfig }: FlowChanges,
): Partial<Automation> {
  if (triggerType === undefined && triggerConfig === undefined) return {}
  if (before.status === 'active')
    throw new AppError(
      'conflict',
      'the trigger of an active automation cannot be changed; pause the automation first',
    )
  const type = triggerType ?? before.triggerType
  const kept = type === before.triggerType ? before.triggerConfig : {}
  return { triggerType: type, triggerConfig: readTriggerConfig(type, { ...kept, ...triggerConfig }) }
}

const PREVIOUS: Readonly<Record<AutomationStatus, readonly AutomationStatus[]>> = {
  draft: [],
  active: ['draft', 'paused'],
  paused: ['active'],
}

async function changeStatus(
  parts: FlowParts,
  tx: Tx,
  { workspaceId, actor }: Owner,
  automation: Automation,
  status: AutomationStatus,
): Promise<void> {
  if (!PREVIOUS[status].includes(automation.status))
    throw new AppError('conflict', `the automation is ${automation.status} and cannot become ${status}`)
  const now = parts.clock.now()
  if (status === 'active') {
    const fault = await findFlowFault(parts, tx.db, automation)
    if (fault !== undefined) throw new AppError('conflict', `the automation cannot become active: ${fault}`)
    await markActivated(tx.db, automation.seq, now)
    if (automation.triggerType === 'segment_entered') await beginSegmentScan(tx.db, automation)
    tx.onCommit(parts.wakeRunner)
  }
  await updateAutomation(tx.db, automation.seq, { ...automation, status })
  const action = status === 'active' ? 'automation.activated' : 'automation.paused'
  await recordActivity(tx, { workspaceId, actor }, now, { action, subject: automation.name })
}

/** @param references absent to delete it even if it is in use */
export async function deleteAutomation(
  parts: FlowParts,
  owner: Owner,
  id: string,
  references?: References,
  precondition?: Precondition,
): Promise<void> {
  const { workspaceId, actor } = owner
  await parts.database.write(async tx => {
    const automation = await getUnchanged(tx.db, workspaceId, id, precondition)
    const { seq, name } = automation
    await references?.refuseIfUsed(tx.db, { kind: 'automation', ...automation })
    const now = parts.clock.now()
    await markAutomationDeleted(tx.db, seq, now)
    await recordActivity(tx, { workspaceId, actor }, now, { action: 'automation.deleted', subject: name })
    tx.onCommit(parts.wakeRunner)
  })
}
