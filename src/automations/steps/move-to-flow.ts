/**
 * The step type `move_to_flow`: starts another automation for the contact and, by default, ends this run.
 *
 * The target's frequency and conditions apply, and a contact that is already in it does not enter again. The new run inherits the
 * step count, so automations that lead to each other end at the step limit.
 */
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import type { Automation } from '../flows/automation.js'
import { findAutomation } from '../flows/automation-store.js'
import { enter } from '../runs/enter.js'
import { hasUnfinishedRun } from '../runs/bulk-run-store.js'
import { text, bool, type ConfigOf } from './config-fields.js'
import type { StepOutcome, StepType, StepExecution } from './step-type.js'
import { missing, unknown } from '../flows/flow-fault.js'

const fields = { targetFlowId: text(64), exitCurrentFlow: bool(true) }

type MoveConfig = ConfigOf<typeof fields>

async function findTarget(
  db: Queries,
  { workspaceId }: Pick<Automation, 'workspaceId'>,
  { targetFlowId }: MoveConfig,
): Promise<Automation | undefined> {
  const id = targetFlowId.trim().toLowerCase()
  return isUuid(id) ? findAutomation(db, workspaceId, id) : undefined
}

export const moveToFlow: StepType = {
  name: 'move_to_flow',
  fields,
  async findFault(config, { db, automation }) {
    if ((config as MoveConfig).targetFlowId.trim() === '') return missing('targetFlowId')
    const target = await findTarget(db, automation, config as MoveConfig)
    if (!target) return unknown('targetFlowId', 'an automation')
    return target.seq === automation.seq
      ? { reason: 'own_automation', field: 'targetFlowId', text: 'leads back to its own automation' }
      : undefined
  },
  prepare: () =>
    Promise.resolve(async (execution): Promise<StepOutcome> => {
      const { exitCurrentFlow } = execution.step.config as MoveConfig
      const detail = await move(execution)
      if (exitCurrentFlow) return { kind: 'exit', exitReason: 'moved_to_flow', detail }
      return { kind: 'done', isSkipped: 'refused' in detail, detail }
    }),
}

/** @throws Error if the target does not exist or is not active; the step is retried */
async function move({ parts, tx, automation, step, run, contact }: StepExecution) {
  const target = await findTarget(tx.db, automation, step.config as MoveConfig)
  if (!target) throw new Error('the target automation does not exist')
  if (target.status !== 'active') throw new Error(`the target automation is ${target.status}, not active`)
  const about = { automation_id: target.id }
  if (await hasUnfinishedRun(tx.db, target.seq, contact.id)) return { ...about, refused: 'inside_already' }
  const entrant = { contactId: contact.id, triggerData: run.triggerData }
  const source = { triggerType: 'move_to_flow', stepsDone: run.stepsDone + 1 }
  const [entry] = await enter(parts, tx, target, [entrant], source)
  return entry?.runId === undefined
    ? { ...about, refused: entry?.refusal ?? 'no_contact' }
    : { ...about, run_id: entry.runId }
}
