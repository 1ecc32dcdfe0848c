/**
 * Takes one step of one run. The step's effects and the run's new position are written in one transaction.
 *
 * | situation                                          | result                                             |
 * |----------------------------------------------------|----------------------------------------------------|
 * | automation is paused                               | parked until it is active again                    |
 * | automation was paused during an external request   | the response counts, then parked                   |
 * | automation or contact is deleted                   | cancelled: `automation_deleted`, `contact_deleted` |
 * | no step is left                                    | completed: `end_of_flow`                           |
 * | step succeeds                                      | next step, due immediately                         |
 * | step waits                                         | due when the wait ends                             |
 * | wait ended, but the step there is another by now   | that step is taken                                 |
 * | step fails                                         | retried with backoff, four attempts in total       |
 * | step fails for the fourth time                     | failed: `step_failed`                              |
 * | step is blocked (limits, disk space)               | retried later; does not count as a failure         |
 * | too many steps taken                               | failed: `step_limit`                               |
 *
 * Called by the runner. Rejects if the database does; nothing is changed then.
 */
import { AppError, describeError, type ErrorCode } from '../../core/errors.js'
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { findContact } from '../../audience/contacts/contacts.js'
import type { Queries, Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { isStorageError } from '../../db/faults/transient-error.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation, StoredStep } from '../flows/automation.js'
import { changeRunCounts, findAutomationBySeq } from '../flows/automation-store.js'
import { END } from '../flows/paths.js'
import { StepError, type Detail, type ExecuteStep, type StepOutcome } from '../steps/step-type.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { MAX_STEPS_PER_RUN, type Run, type StepResult } from './run.js'
import { parkRun } from './bulk-run-store.js'
import { countPath, type CountedPath } from './step-count-store.js'
import { endRuns, findRunBySeq, moveRun, type Ending } from './run-store.js'
import { findLastWait, recordStep } from './step-record-store.js'

const RETRY: BackoffPolicy = { firstMs: 60_000, factor: 5, maxMs: 3_600_000 }
const MAX_RETRIES = 3
/** Errors that block a step without being its fault. */
const BLOCKING: ReadonlySet<ErrorCode> = new Set(['limit_reached', 'rate_limited', 'unavailable'])
const BLOCKED_RETRY_MS = 900_000
/** Used if an `unavailable` error has no `retryAfterMs`. */
export const UNAVAILABLE_RETRY_MS = 5_000

/** `continue`: the run is due and can take another step now. */
export type Progress = 'continue' | 'stop'

/** An automation with its steps, deleted ones included. */
export class Flow {
  readonly automation: Automation
  private readonly bySeq = new Map<number, StoredStep>()
  private readonly byId = new Map<string, StoredStep>()
  /** Without deleted ones, by position. */
  private readonly steps: readonly StoredStep[]

  constructor(automation: Automation, stored: readonly StoredStep[]) {
    this.automation = automation
    this.steps = stored.filter(({ deletedAt }) => deletedAt === null)
    for (const step of stored) {
      this.bySeq.set(step.seq, step)
      this.byId.set(step.id, step)
    }
  }

  /** The step with this number, or its successor if it was deleted. @returns undefined at the end of the flow */
  at(seq: number | null): StoredStep | undefined {
    // The counter guards against a cycle of successors in damaged data.
    for (let next = seq, hops = 0; next !== null && hops <= this.bySeq.size; hops += 1) {
      const step = this.bySeq.get(next)
      if (step === undefined || step.deletedAt === null) return step
      next = step.successor
    }
    return undefined
  }

  /** @returns undefined if no step, deleted or not, has the id; null at the end of the flow */
  withId(id: string): StoredStep | null | undefined {
    if (id === END) return null
    const step = this.byId.get(id)
    return step && (this.at(step.seq) ?? null)
  }

  /** The next step unless the outcome names another; see `withId`. */
  next(step: StoredStep, skipCount = 0): StoredStep | null | undefined {
    const id = step.config['nextStepId']
    return skipCount === 0 && typeof id === 'string' ? this.withId(id) : (this.after(step, skipCount) ?? null)
  }

  private after({ seq }: Pick<StoredStep, 'seq'>, skipCount: number): StoredStep | undefined {
    const index = this.steps.findIndex(one => one.seq === seq)
    return index < 0 ? undefined : this.steps[index + 1 + skipCount]
  }
}

/** @param run as it was read; compared with its row before anything is done */
export async function advance(parts: FlowParts, flow: Flow, run: Run): Promise<Progress> {
  const { database } = parts
  const step = flow.at(run.step)
  const isResuming = run.wait !== null
  const inTransaction = (work: (advance: Advance) => Promise<Progress>) =>
    database.write(tx => work(new Advance(parts, tx, flow, run, step)), { isLong: true })
  if (!step || isResuming || run.stepsDone >= MAX_STEPS_PER_RUN) return inTransaction(it => it.execute())
  // A request cannot be undone, so none is sent for a run that may not act.
  if (hasExternalEffects(step) && !(await mayAct(database.reader, run)))
    return inTransaction(it => it.parkOrCancel())
  try {
    const execute = await STEP_TYPE[step.type].prepare({ parts, automation: flow.automation, step, run })
    return await inTransaction(it => it.execute(execute))
  } catch (error) {
    if (isStorageError(error)) throw error
    return inTransaction(it => it.fail(error))
  }
}

class Advance {
  private readonly parts: FlowParts
  private readonly tx: Tx
  private readonly flow: Flow
  private readonly run: Run
  private readonly step: StoredStep | undefined
  private readonly now: number

  constructor(parts: FlowParts, tx: Tx, flow: Flow, run: Run, step: StoredStep | undefined) {
    this.parts = parts
    this.tx = tx
    this.flow = flow
    this.run = run
    this.step = step
    this.now = parts.clock.now()
  }

  /** @param prepared the step to execute; absent if the run resumes after a wait, or no step is to be taken */
  async execute(prepared?: ExecuteStep): Promise<Progress> {
    const { step } = this
    const automation = await this.findAutomation()
    if (!automation) return 'stop'
    const isPaused = automation.status !== 'active'
    if (isPaused && !(prepared && step && hasExternalEffects(step))) return this.park()
    const progress = await this.takeStep(automation, prepared)
    return isPaused ? this.park() : progress
  }

  async parkOrCancel(): Promise<Progress> {
    const automation = await this.findAutomation()
    return automation && automation.status !== 'active' ? this.park() : 'stop'
  }

  async fail(error: unknown): Promise<Progress> {
    const { step } = this
    const automation = step && (await this.findAutomation())
    if (!step || !automation) return 'stop'
    const isPaused = automation.status !== 'active'
    if (isPaused && !hasExternalEffects(step)) return this.park()
    const progress = await this.recordFailure(step, error)
    return isPaused ? this.park() : progress
  }

  private async takeStep(automation: Automation, prepared: ExecuteStep | undefined): Promise<Progress> {
    const { parts, tx, run, step, now } = this
    if (!step) return this.end({ status: 'completed', exitReason: 'end_of_flow' })
    const contact = await findContact(tx.db, run.workspaceId, { id: run.contactId })
    if (!contact) return this.end({ status: 'cancelled', exitReason: 'contact_deleted' })
    const execution = { parts, automation, step, run, tx, contact, now }
    if (prepared) return this.apply(step, await prepared(execution))
    if (run.wait === null) return this.endByLimit()
    if (await this.hasNotBegun(step)) return this.begin()
    const reason = run.wait === 'arrived' ? 'event' : 'time'
    const outcome = STEP_TYPE[step.type].resume?.(execution, reason) ?? { kind: 'done' }
    return this.apply(step, outcome, 0)
  }

  /** Whether the wait was that of another step: this one got its type while the run waited, or took the place of a deleted one. */
  private async hasNotBegun({ id, type }: StoredStep): Promise<boolean> {
    const waited = await findLastWait(this.tx.db, this.run.seq)
    return waited !== undefined && (waited.stepId !== id || waited.stepType !== type)
  }

  /** Ends the wait without a result, so that the step is taken from its beginning. */
  private async begin(): Promise<Progress> {
    const { tx, run, step, now } = this
    const position = { step: step?.seq ?? null, wait: null, waitEvent: null, waitMessage: null, dueAt: now }
    await moveRun(tx.db, run.seq, { ...run, ...position, failures: 0, refusals: 0 })
    return 'continue'
  }

  private async recordFailure(step: StoredStep, error: unknown): Promise<Progress> {
    const { parts, tx, run, now } = this
    const message = describeError(error)
    const detail = { error: message, ...(error instanceof StepError ? error.detail : {}) }
    if (error instanceof AppError && BLOCKING.has(error.code)) {
      const isUnavailable = error.code === 'unavailable'
      const dueAt = now + (error.retryAfterMs ?? (isUnavailable ? UNAVAILABLE_RETRY_MS : BLOCKED_RETRY_MS))
      // Retried within seconds: not worth a record each time.
      if (!isUnavailable) await this.record(step, 'retrying', detail)
      await moveRun(tx.db, run.seq, { ...run, dueAt })
      return 'stop'
    }
    const failures = run.failures + 1
    if (failures > MAX_RETRIES) {
      await this.record(step, 'failed', detail)
      await countPath(tx.db, step.seq, 'failed')
      return this.end({ status: 'failed', exitReason: 'step_failed', error: message })
    }
    const dueAt = now + retryDelayMs(RETRY, failures, parts.random.fraction())
    await this.record(step, 'retrying', detail)
    const refusals = run.refusals + (error instanceof StepError && error.isAnswered ? 1 : 0)
    await moveRun(tx.db, run.seq, { ...run, failures, refusals, dueAt })
    return 'stop'
  }

  /** The automation, active or paused, if the run's row is unchanged. Cancels the run if the automation is deleted. */
  private async findAutomation(): Promise<Automation | undefined> {
    const { tx, run } = this
    const current = await findRunBySeq(tx.db, run.seq)
    if (!current || !isUnchanged(current, run)) return undefined
    const automation = await findAutomationBySeq(tx.db, run.automation)
    if (automation && automation.deletedAt === null) return automation
    await this.end({ status: 'cancelled', exitReason: 'automation_deleted' })
    return undefined
  }

  private async park(): Promise<Progress> {
    await parkRun(this.tx.db, this.run.seq)
    return 'stop'
  }

  /** @param counted 0 for a step that was counted when its wait began */
  private async apply(step: StoredStep, outcome: StepOutcome, counted = 1): Promise<Progress> {
    const { tx, run, flow, now } = this
    const stepsDone = run.stepsDone + counted
    if (outcome.kind === 'wait') {
      const { until, event, detail } = outcome
      await this.record(step, 'waiting', detail)
      await moveRun(tx.db, run.seq, {
        step: step.seq,
        wait: event ? 'event' : 'time',
        dueAt: until,
        stepsDone,
        failures: 0,
        refusals: 0,
        lastMessageId: run.lastMessageId,
        waitEvent: event?.type ?? null,
        waitMessage: event?.messageId ?? null,
      })
      return until <= now ? 'continue' : 'stop'
    }
    const isSkipped = outcome.kind === 'done' && outcome.isSkipped === true
    await this.record(step, isSkipped ? 'skipped' : 'completed', outcome.detail)
    await countPath(tx.db, step.seq, pathOf(outcome))
    if (outcome.kind === 'exit') return this.end({ status: 'completed', exitReason: outcome.exitReason })
    const { goTo } = outcome
    const next = goTo === undefined ? flow.next(step, outcome.skipCount) : flow.withId(goTo)
    if (next === undefined) {
      const error = `the branch leads to step ${goTo ?? String(step.config['nextStepId'])}, which does not exist`
      return this.end({ status: 'failed', exitReason: 'step_failed', error })
    }
    await moveRun(tx.db, run.seq, {
      step: next?.seq ?? null,
      wait: null,
      waitEvent: null,
      waitMessage: null,
      dueAt: now,
      stepsDone,
      failures: 0,
      refusals: 0,
      lastMessageId: outcome.messageId ?? run.lastMessageId,
    })
    if (next) return 'continue'
    return this.end({ status: 'completed', exitReason: 'end_of_flow' })
  }

  private endByLimit(): Promise<Progress> {
    const error = `the run has taken ${MAX_STEPS_PER_RUN} steps, the most a run may take`
    return this.end({ status: 'failed', exitReason: 'step_limit', error })
  }

  private async end(ending: Ending): Promise<Progress> {
    const { tx, run, flow, now, parts } = this
    const { workspaceId, isSandbox, contactId, triggerType } = run
    await endRuns(tx.db, [run.seq], ending, now)
    await changeRunCounts(tx.db, run.automation, { active: -1, [ending.status]: 1 })
    if (ending.status !== 'completed') return 'stop'
    const about = { automationId: flow.automation.id, runId: run.id, contactId, triggerType }
    await appendEvents(tx, [
      {
        kind: 'flow.completed',
        workspaceId,
        isSandbox,
        messageId: null,
        occurredAt: now,
        payload: { ...about, exitReason: ending.exitReason },
      },
    ])
    tx.onCommit(parts.onEvents)
    return 'stop'
  }

  private record({ id, type }: StoredStep, outcome: StepResult, detail?: Detail): Promise<void> {
    const { tx, run, now } = this
    return recordStep(tx.db, run.seq, {
      stepId: id,
      stepType: type,
      outcome,
      at: now,
      detail: detail && Object.keys(detail).length > 0 ? detail : null,
    })
  }
}

export function pathOf(outcome: Exclude<StepOutcome, { kind: 'wait' }>): CountedPath {
  if (outcome.kind === 'exit') return 'next'
  return outcome.isSkipped === true ? 'skipped' : (outcome.path ?? 'next')
}

/** Preparing the step sends a request to another server. */
function hasExternalEffects({ type }: StoredStep): boolean {
  return STEP_TYPE[type].isSlow === true
}

async function mayAct(db: Queries, run: Run): Promise<boolean> {
  const current = await findRunBySeq(db, run.seq)
  const automation = await findAutomationBySeq(db, run.automation)
  return (
    current !== undefined &&
    isUnchanged(current, run) &&
    automation?.deletedAt === null &&
    automation.status === 'active'
  )
}

/** Whether the run was neither woken, moved, ended nor parked since it was read. */
function isUnchanged(current: Run, read: Run): boolean {
  return (
    current.endedAt === null &&
    current.dueAt !== null &&
    current.step === read.step &&
    current.wait === read.wait &&
    current.stepsDone === read.stepsDone &&
    current.failures === read.failures
  )
}
