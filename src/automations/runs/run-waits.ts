/**
 * Why a run waits, other than for what its flow says: a step that waits for time or an event is not listed as a wait.
 *
 * Which limit blocked its step is not stored; it is the one that is used up now.
 */
import { findRestoreHold } from '../../accounts/restore-hold-store.js'
import { allowanceWithinLimits, type Allowance } from '../../accounts/sending-limit-store.js'
import { limitWait, RESTORE_HELD } from '../../accounts/waits.js'
import { storageWait, waitingUntil, type Waiting } from '../../core/waiting.js'
import type { Queries, StorageFault } from '../../db/database.js'
import { findLiveWorkspace, type AutomationParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import type { Run } from './run.js'

export interface RunState {
  readonly now: number
  readonly isRestoreHeld: boolean
  readonly fault: StorageFault | undefined
  /** Undefined for a sandbox. */
  readonly allowance: Allowance | undefined
}

export async function readRunState(
  { database, clock, send }: Pick<AutomationParts, 'database' | 'clock' | 'send'>,
  db: Queries,
  { workspaceId, isSandbox }: Pick<Automation, 'workspaceId' | 'isSandbox'>,
): Promise<RunState> {
  const now = clock.now()
  const workspace = isSandbox ? undefined : await findLiveWorkspace({ send }, workspaceId)
  return {
    now,
    isRestoreHeld: (await findRestoreHold(db)) !== undefined,
    fault: database.storage.fault,
    allowance: workspace && (await allowanceWithinLimits(db, workspace, now)),
  }
}

export function runWaitsFor(run: Run, automation: Automation, state: RunState): Waiting | undefined {
  const waiting = reasonOf(run, automation, state)
  return waiting && waitingUntil(waiting, state.now)
}

function reasonOf(
  { endedAt, wait, dueAt, failures }: Run,
  { status }: Automation,
  { now, isRestoreHeld, fault, allowance }: RunState,
): Waiting | undefined {
  if (endedAt !== null) return undefined
  if (status === 'paused')
    return { reason: 'hold', detail: 'Its automation is paused; activate the automation to continue.' }
  if (dueAt === null) return undefined
  const isPlanned = wait !== null && dueAt > now
  if (isPlanned) return undefined
  if (isRestoreHeld) return RESTORE_HELD
  if (fault) return storageWait(fault)
  if (dueAt <= now) return undefined
  if (failures === 0 && allowance?.mails === 0 && allowance.fullest)
    return limitWait(allowance.fullest, dueAt)
  return {
    reason: 'retry',
    until: dueAt,
    detail:
      failures === 0
        ? 'Its step could not be taken for the time being and is tried again then.'
        : 'Its step failed and is tried again then; the step log has the error.',
  }
}
