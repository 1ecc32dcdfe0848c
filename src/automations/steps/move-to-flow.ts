/**
 * The step `move_to_flow`: the contact enters another automation, and leaves this one or goes on in both.
 *
 * It enters as by a trigger: its frequency and conditions hold, and where the contact is inside already nothing is begun a second
 * time. Steps that this run has taken are counted on, so that automations that lead to each other come to an end.
 */
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import type { Automation } from '../flows/automation.js'
import { findAutomation } from '../flows/automation-store.js'
import { enter } from '../runs/enter.js'
import { isInside } from '../runs/following-store.js'
import { text, truth, type ConfigOf } from './config-fields.js'
import type { StepOutcome, StepType, Taking } from './step-type.js'

const fields = { targetFlowId: text(64), exitCurrentFlow: truth(true) }

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
    if ((config as MoveConfig).targetFlowId.trim() === '') return 'has no targetFlowId'
    const target = await findTarget(db, automation, config as MoveConfig)
    if (!target) return 'names an automation that is not there'
    return target.seq === automation.seq ? 'leads to its own automation' : undefined
  },
  prepare: () =>
    Promise.resolve(async (taking): Promise<StepOutcome> => {
      const { exitCurrentFlow } = taking.step.config as MoveConfig
      const detail = await move(taking)
      if (exitCurrentFlow) return { kind: 'exit', exitReason: 'moved_to_flow', detail }
      return { kind: 'done', isSkipped: 'refused' in detail, detail }
    }),
}

/** @throws Error where there is no automation to move to, or it is not active: the step is tried again */
async function move({ parts, tx, automation, step, run, contact }: Taking) {
  const target = await findTarget(tx.db, automation, step.config as MoveConfig)
  if (!target) throw new Error('the automation to move to is not there')
  if (target.status !== 'active') throw new Error(`the automation to move to is ${target.status}`)
  const head = { automation_id: target.id }
  if (await isInside(tx.db, target.seq, contact.id)) return { ...head, refused: 'inside_already' }
  const entrant = { contactId: contact.id, triggerData: run.triggerData }
  const way = { triggerType: 'move_to_flow', stepsDone: run.stepsDone + 1 }
  const [entry] = await enter(parts, tx, target, [entrant], way)
  return entry?.runId === undefined
    ? { ...head, refused: entry?.refusal ?? 'no_contact' }
    : { ...head, run_id: entry.runId }
}
