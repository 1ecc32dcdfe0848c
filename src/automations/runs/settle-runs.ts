/**
 * Lets runs follow what became of their automation, or of the step that they wait on, piece by piece: there may be a million.
 *
 * | an automation that is active again | those that stood still go on                         |
 * | an automation that was deleted     | its runs end: cancelled, `automation_deleted`       |
 * | a step that was deleted            | those that wait on it go on with the one after it    |
 *
 * Called by the runner between its groups. What is not done at a crash is found again. Fails: as the database does.
 */
import type { Tx } from '../../db/database.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { changeRunCounts, findUnsettled, markSettled } from '../flows/automation-store.js'
import { findUnsettledSteps, markStepSettled } from '../flows/step-store.js'
import { findUnfinished, forgetContacts, leaveStep, unparkRuns } from './following-store.js'
import { endRuns } from './run-store.js'

/** Runs of one transaction: a few milliseconds. */
const AT_ONCE = 200

/** One piece. @returns whether there was anything to do */
export async function settleSome({
  database,
  clock,
}: Pick<FlowParts, 'database' | 'clock'>): Promise<boolean> {
  const [automation] = await findUnsettled(database.reader, 1)
  const [step] = automation ? [] : await findUnsettledSteps(database.reader, 1)
  if (!automation && !step) return false
  await database.write(
    async tx => {
      const now = clock.now()
      if (automation) {
        if (await settleAutomation(tx, automation, now)) await markSettled(tx.db, automation.seq)
      } else if (step) {
        const { seq, successor } = step
        if ((await leaveStep(tx.db, seq, successor, now, AT_ONCE)) < AT_ONCE)
          await markStepSettled(tx.db, seq)
      }
    },
    { isLong: true },
  )
  return true
}

/** @returns whether nothing is left to be done */
async function settleAutomation(tx: Tx, { seq, deletedAt }: Automation, now: number): Promise<boolean> {
  if (deletedAt === null) return (await unparkRuns(tx.db, seq, AT_ONCE)) < AT_ONCE
  const runs = await findUnfinished(tx.db, seq, AT_ONCE)
  if (runs.length === 0) return (await forgetContacts(tx.db, seq, AT_ONCE)) === 0
  const ended = await endRuns(tx.db, runs, { status: 'cancelled', exitReason: 'automation_deleted' }, now)
  if (ended > 0) await changeRunCounts(tx.db, seq, { active: -ended, cancelled: ended })
  return false
}
