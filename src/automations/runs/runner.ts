/**
 * The automation runner: takes due runs in batches and advances each until it waits or ends.
 *
 * Runs as one job for the life of the process. It sleeps until the next run is due, `wake` is called or another process has written.
 * Slow steps (web requests) run in separate slots, so one workspace's slow server delays nobody else. If more runs are due than fit
 * in a batch, workspaces take turns. After a crash every run in progress is due again.
 * Never rejects; while the database cannot write it retries.
 */
import { AppError, describeError } from '../../core/errors.js'
import { FairShares } from '../../core/fair-shares.js'
import { actFor } from '../../core/holder.js'
import type { Queries, Tx } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { isStorageError } from '../../db/faults/transient-error.js'
import { pauseFor } from '../../world/time/clock.js'
import { AT_ONCE, Worker } from '../../world/time/worker.js'
import { type AutomationParts, type FlowParts, findLiveWorkspace } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import {
  changeRunCounts,
  findAutomationBySeq,
  findChangedAutomations,
  markChangeApplied,
} from '../flows/automation-store.js'
import { findDeletedSteps, findStoredSteps, markDeletionApplied } from '../flows/step-store.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { advance, Flow, UNAVAILABLE_RETRY_MS } from './advance.js'
import { deleteContactRecords, findUnfinishedRuns, skipDeletedStep, unparkRuns } from './bulk-run-store.js'
import type { Run } from './run.js'
import {
  endRuns,
  findDue,
  findDueOf,
  findRunBySeq,
  listOwnersOfRuns,
  moveRun,
  nextDueAt,
} from './run-store.js'

const BATCH_SIZE = 64
/** Runs advanced concurrently; their transactions share a group commit of a few milliseconds. */
const CONCURRENCY = 32
/** Workspaces that share a batch if more is due than fits. */
const WORKSPACES_PER_BATCH = 16
/** Steps of one run before other runs are served. */
const MAX_STEPS_IN_A_ROW = 20
/** Concurrent slow steps, in total, of which every workspace gets a part, and at most per workspace. */
const SLOW_SLOTS = 32
const SLOW_SLOTS_PER_WORKSPACE = 8
/** Base delay until a run tries again to get a slot. */
const SLOT_RETRY_MS = 5_000
/** Real time between batches, so that other writers are not starved. */
const BATCH_PAUSE_MS = 1
/** Until the runner looks again while slow steps are under way. */
const SLOW_CHECK_MS = 1_000
/** Delay of a run after an error that is not its step's. */
const FAILED_RUN_DELAY_MS = 300_000
/** Delay of a run whose workspace was removed and may be restored. */
const REMOVED_WORKSPACE_DELAY_MS = 3_600_000
/** Rows per transaction when changes of automations are applied to their runs: a few milliseconds. */
const CHANGE_BATCH_SIZE = 200

export class Runner {
  private readonly parts: FlowParts
  private readonly flows: FlowCache
  private readonly slow = new Map<number, Promise<void>>()
  private readonly slots = new FairShares(SLOW_SLOTS, { perOwner: SLOW_SLOTS_PER_WORKSPACE })
  /** A storage error that a slow step ran into. */
  private storageError: unknown
  /** The last workspace served; the next shared batch starts after it. */
  private lastOwner = ''
  private readonly worker: Worker

  constructor(parts: AutomationParts) {
    this.parts = { ...parts, wakeRunner: () => this.wake() }
    this.flows = new FlowCache(parts.database.reader)
    this.worker = new Worker({
      ...parts,
      failure: 'automation runner failed',
      runPiece: stopping => this.runPiece(stopping),
      version: () => parts.database.changes.version('automations'),
    })
  }

  /** Cheap; call it whenever there may be work. */
  wake(): void {
    this.worker.wake()
  }

  /** Resolves after `stopping` is aborted and all slow steps are done. */
  async run(stopping: AbortSignal): Promise<void> {
    await this.worker.run(stopping)
    await this.slowStepsDone()
  }

  private async runPiece(stopping: AbortSignal): Promise<number> {
    if (!(await this.runBatch(stopping))) return this.nextDueAt()
    this.worker.resetBackoff()
    await pauseFor(BATCH_PAUSE_MS)
    return AT_ONCE
  }

  /** Does everything that is due now, slow steps included. For tests with a fake clock. */
  async runDue(): Promise<void> {
    const never = new AbortController().signal
    do {
      while (await this.runBatch(never));
      await this.slowStepsDone()
    } while (await this.runBatch(never))
  }

  private async slowStepsDone(): Promise<void> {
    await Promise.all(this.slow.values())
  }

  /** @returns whether there was anything to do */
  private async runBatch(stopping: AbortSignal): Promise<boolean> {
    const { storageError } = this
    this.storageError = undefined
    // Backs off before repeating requests whose responses could not be stored.
    if (storageError !== undefined) throw asError(storageError)
    if (await applyNextChange(this.parts)) return true
    this.flows.clear()
    const due = (await this.findDue()).filter(seq => !this.slow.has(seq))
    const errors: unknown[] = []
    let next = 0
    const worker = async () => {
      for (let seq = due[next++]; seq !== undefined && errors.length === 0; seq = due[next++])
        try {
          await this.advanceRun(seq, stopping)
        } catch (error) {
          await this.reschedule(seq, error).catch((thrown: unknown) => errors.push(thrown))
        }
    }
    await Promise.all(Array.from({ length: CONCURRENCY }, worker))
    const [first] = errors
    if (first !== undefined) throw asError(first)
    return due.length > 0
  }

  /** The oldest due runs; if more are due than fit, the oldest of each of the next workspaces. */
  private async findDue(): Promise<number[]> {
    const { reader } = this.parts.database
    const now = this.parts.clock.now()
    const limit = BATCH_SIZE + this.slow.size
    const oldest = await findDue(reader, now, limit)
    if (oldest.length < limit) return oldest
    const owners = await listOwnersOfRuns(reader, this.lastOwner, WORKSPACES_PER_BATCH)
    this.lastOwner = owners.length < WORKSPACES_PER_BATCH ? '' : (owners.at(-1) ?? '')
    const share = Math.ceil(BATCH_SIZE / Math.max(1, owners.length)) + SLOW_SLOTS_PER_WORKSPACE
    const shared: number[] = []
    for (const owner of owners) shared.push(...(await findDueOf(reader, owner, now, share)))
    return shared.length > 0 ? shared : oldest
  }

  /** Postpones a run after an unexpected error, so that it does not block the others. @throws storage errors */
  private async reschedule(seq: number, error: unknown): Promise<void> {
    if (isStorageError(error)) throw error
    if (error instanceof AppError && error.code === 'unavailable')
      return this.postpone(seq, error.retryAfterMs ?? UNAVAILABLE_RETRY_MS)
    const { log } = this.parts
    log.error('automation run failed, rescheduled', { run: seq, error: describeError(error) })
    await this.postpone(seq, FAILED_RUN_DELAY_MS)
  }

  private async advanceRun(seq: number, stopping: AbortSignal): Promise<void> {
    for (let steps = 0; steps < MAX_STEPS_IN_A_ROW && !stopping.aborted; steps += 1) {
      const run = await findRunBySeq(this.parts.database.reader, seq)
      if (!run || run.dueAt === null || run.dueAt > this.parts.clock.now()) return
      const flow = await this.flows.get(run.automation)
      if (!flow) return
      if (!(await findLiveWorkspace(this.parts, run.workspaceId)))
        return this.postpone(seq, REMOVED_WORKSPACE_DELAY_MS)
      if (isSlow(flow, run)) return this.beginSlowStep(flow, run)
      if ((await advance(this.parts, flow, run)) === 'stop') return
    }
  }

  private async beginSlowStep(flow: Flow, run: Run): Promise<void> {
    const { seq, workspaceId } = run
    const holder = { owner: workspaceId }
    if (this.slots.take(holder) !== undefined) {
      // Jitter spreads the runs that compete for the slots.
      const jitter = 1 + Math.floor(4 * this.parts.random.fraction())
      return this.postpone(seq, SLOT_RETRY_MS * jitter)
    }
    const done = actFor(holder, () => this.takeSlowStep(flow, run)).finally(() => {
      this.slow.delete(seq)
      this.slots.release(holder)
      this.wake()
    })
    this.slow.set(seq, done)
  }

  private async takeSlowStep(flow: Flow, run: Run): Promise<void> {
    try {
      await advance(this.parts, flow, run)
    } catch (error) {
      await this.reschedule(run.seq, error).catch((thrown: unknown) => (this.storageError = thrown))
    }
  }

  private async postpone(seq: number, ms: number): Promise<void> {
    const { database, clock } = this.parts
    await database.write(async tx => {
      const run = await findRunBySeq(tx.db, seq)
      if (run && run.dueAt !== null) await moveRun(tx.db, seq, { ...run, dueAt: clock.now() + ms })
    })
  }

  /** Ms since epoch UTC. Runs in slow steps are due too, but wake the runner when they are done. */
  private async nextDueAt(): Promise<number> {
    const { database, clock } = this.parts
    const next = (await nextDueAt(database.reader)) ?? Infinity
    return this.slow.size > 0 ? Math.max(next, clock.now() + SLOW_CHECK_MS) : next
  }
}

/** Reads each flow once per batch. An edit made during a batch takes effect with the next one. */
class FlowCache {
  private readonly reader: Queries
  private readonly flows = new Map<number, Promise<Flow | undefined>>()

  constructor(reader: Queries) {
    this.reader = reader
  }

  get(seq: number): Promise<Flow | undefined> {
    const cached = this.flows.get(seq)
    if (cached) return cached
    const read = this.read(seq)
    this.flows.set(seq, read)
    return read
  }

  clear(): void {
    this.flows.clear()
  }

  private async read(seq: number): Promise<Flow | undefined> {
    return snapshot(this.reader, async db => {
      const automation = await findAutomationBySeq(db, seq)
      return automation && new Flow(automation, await findStoredSteps(db, seq))
    })
  }
}

/**
 * Applies one batch of a change to the runs it affects; there may be a million.
 *
 * | change                | effect on runs                                      |
 * |-----------------------|-----------------------------------------------------|
 * | automation reactivated | parked runs are due again                          |
 * | automation deleted    | unfinished runs are cancelled: `automation_deleted` |
 * | step deleted          | runs at that step move to its successor             |
 *
 * The change stays marked as pending until all its runs are done, so a crash loses nothing.
 *
 * @returns whether there was anything to do
 */
async function applyNextChange({ database, clock }: Pick<FlowParts, 'database' | 'clock'>): Promise<boolean> {
  const [automation] = await findChangedAutomations(database.reader, 1)
  const [step] = automation ? [] : await findDeletedSteps(database.reader, 1)
  if (!automation && !step) return false
  await database.write(
    async tx => {
      const now = clock.now()
      if (automation) {
        if (await applyAutomationChange(tx, automation, now)) await markChangeApplied(tx.db, automation.seq)
      } else if (step) {
        const { seq, successor } = step
        if ((await skipDeletedStep(tx.db, seq, successor, now, CHANGE_BATCH_SIZE)) < CHANGE_BATCH_SIZE)
          await markDeletionApplied(tx.db, seq)
      }
    },
    { isLong: true },
  )
  return true
}

/** @returns whether the change is fully applied */
async function applyAutomationChange(tx: Tx, { seq, deletedAt }: Automation, now: number): Promise<boolean> {
  if (deletedAt === null) return (await unparkRuns(tx.db, seq, CHANGE_BATCH_SIZE)) < CHANGE_BATCH_SIZE
  const runs = await findUnfinishedRuns(tx.db, seq, CHANGE_BATCH_SIZE)
  if (runs.length === 0) return (await deleteContactRecords(tx.db, seq, CHANGE_BATCH_SIZE)) === 0
  const ended = await endRuns(tx.db, runs, { status: 'cancelled', exitReason: 'automation_deleted' }, now)
  if (ended > 0) await changeRunCounts(tx.db, seq, { active: -ended, cancelled: ended })
  return false
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(describeError(thrown))
}

function isSlow(flow: Flow, run: Run): boolean {
  const step = flow.at(run.step)
  return step !== undefined && run.wait === null && STEP_TYPE[step.type].isSlow === true
}
