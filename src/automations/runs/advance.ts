/**
 * Takes one step of one run: what it does and the mark that it was done are one transaction.
 *
 * | the run                                             | comes to                                          |
 * |-----------------------------------------------------|---------------------------------------------------|
 * | its automation is paused                            | parked, until that is active again                |
 * | its automation was paused during a request          | the answer counts, then parked                    |
 * | its automation, or its contact, is deleted          | cancelled: `automation_deleted`, `contact_deleted` |
 * | no step is left                                     | completed: `end_of_flow`                          |
 * | the step is done                                    | the next step, due at once                        |
 * | the step waits                                      | due when that is over                             |
 * | the step fails                                      | the same step after a while, four times in all    |
 * | the step fails for the fourth time                  | failed: `step_failed`                             |
 * | the step cannot be done for now (limits, no room)   | the same step later, however often                |
 * | the steps are too many                              | failed: `step_limit`                              |
 *
 * Called by the runner alone, for one run at a time. Fails: as the database does, and then nothing was done.
 */
import { AppError, describeError, type ErrorCode } from '../../core/errors.js'
import { retryDelayMs, type BackoffPolicy } from '../../core/backoff.js'
import { findContact } from '../../audience/contacts/contacts.js'
import type { Queries, Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { isStorageError } from '../../events/set-aside-store.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation, KeptStep } from '../flows/automation.js'
import { changeRunCounts, findAutomationBySeq } from '../flows/automation-store.js'
import { StepFault, type Detail, type StepOutcome, type Take } from '../steps/step-type.js'
import { STEP_TYPE } from '../steps/step-types.js'
import type { Flow } from './flow-cache.js'
import { MOST_STEPS_OF_A_RUN, type Run, type StepResult } from './run.js'
import { parkRun } from './following-store.js'
import { endRuns, findRunBySeq, moveRun, type Ending } from './run-store.js'
import { recordStep } from './step-log-store.js'

const RETRY: BackoffPolicy = { firstMs: 60_000, factor: 5, maxMs: 3_600_000 }
/** Beyond the first attempt. */
const RETRIES = 3
/** What is nobody's fault and passes by itself. */
const POSTPONED: ReadonlySet<ErrorCode> = new Set(['limit_reached', 'rate_limited', 'unavailable'])
const POSTPONED_MS = 900_000
/** Until what is unavailable is tried again, where it does not say. */
export const UNAVAILABLE_MS = 5_000

/** Whether the run can take another step at once. */
export type Standing = 'goes_on' | 'rests'

/** @param run as it was read; it is looked at anew before anything is done */
export async function advance(parts: FlowParts, flow: Flow, run: Run): Promise<Standing> {
  const { database } = parts
  const step = flow.at(run.step)
  const isOver = run.wait !== null
  if (!step || isOver || run.stepsDone >= MOST_STEPS_OF_A_RUN)
    return database.write(tx => new Advance(parts, tx, flow, run, step).take(), { isLong: true })
  // A request cannot be taken back: nothing is sent for a run that may not act.
  if (hasOutsideEffects(step) && !(await mayAct(database.reader, run)))
    return database.write(tx => new Advance(parts, tx, flow, run, step).stop(), { isLong: true })
  let take: Take
  try {
    take = await STEP_TYPE[step.type].prepare({ parts, automation: flow.automation, step, run })
    return await database.write(tx => new Advance(parts, tx, flow, run, step).take(take), { isLong: true })
  } catch (error) {
    if (isStorageError(error)) throw error
    return database.write(tx => new Advance(parts, tx, flow, run, step).fail(error), { isLong: true })
  }
}

class Advance {
  private readonly parts: FlowParts
  private readonly tx: Tx
  private readonly flow: Flow
  private readonly run: Run
  private readonly step: KeptStep | undefined
  private readonly now: number

  constructor(parts: FlowParts, tx: Tx, flow: Flow, run: Run, step: KeptStep | undefined) {
    this.parts = parts
    this.tx = tx
    this.flow = flow
    this.run = run
    this.step = step
    this.now = parts.clock.now()
  }

  /** @param take of a step that begins; absent where it waited, or none is taken any more */
  async take(take?: Take): Promise<Standing> {
    const { step } = this
    const automation = await this.findAutomation()
    if (!automation) return 'rests'
    const isPaused = automation.status !== 'active'
    if (isPaused && !(take && step && hasOutsideEffects(step))) return this.park()
    const standing = await this.takeStep(automation, take)
    return isPaused ? this.park() : standing
  }

  /** Parks or ends the run where its automation is paused or deleted. */
  async stop(): Promise<Standing> {
    const automation = await this.findAutomation()
    return automation && automation.status !== 'active' ? this.park() : 'rests'
  }

  private async takeStep(automation: Automation, take: Take | undefined): Promise<Standing> {
    const { parts, tx, run, step, now } = this
    if (!step) return this.end({ status: 'completed', exitReason: 'end_of_flow' })
    const contact = await findContact(tx.db, run.workspaceId, { id: run.contactId })
    if (!contact) return this.end({ status: 'cancelled', exitReason: 'contact_deleted' })
    const taking = { parts, automation, step, run, tx, contact, now }
    if (take) return this.follow(step, await take(taking))
    if (run.wait === null) return this.endByLimit()
    const how = run.wait === 'arrived' ? 'event' : 'time'
    // Where the step has become another one meanwhile, it was waited for what it was.
    const type = STEP_TYPE[step.type]
    const outcome = type.goOn?.(taking, how) ?? { kind: 'done' }
    return this.follow(step, outcome, 0)
  }

  async fail(error: unknown): Promise<Standing> {
    const { step } = this
    const automation = step && (await this.findAutomation())
    if (!step || !automation) return 'rests'
    const isPaused = automation.status !== 'active'
    if (isPaused && !hasOutsideEffects(step)) return this.park()
    const standing = await this.countFailure(step, error)
    return isPaused ? this.park() : standing
  }

  private async countFailure(step: KeptStep, error: unknown): Promise<Standing> {
    const { parts, tx, run, now } = this
    const message = describeError(error)
    const detail = { error: message, ...(error instanceof StepFault ? error.detail : {}) }
    if (error instanceof AppError && POSTPONED.has(error.code)) {
      const isUnavailable = error.code === 'unavailable'
      const dueAt = now + (error.retryAfterMs ?? (isUnavailable ? UNAVAILABLE_MS : POSTPONED_MS))
      // The appliance is busy or has no room: the next look is soon, and no reason to write lines about.
      if (!isUnavailable) await this.record(step, 'retrying', detail)
      await moveRun(tx.db, run.seq, { ...run, dueAt })
      return 'rests'
    }
    const failures = run.failures + 1
    if (failures > RETRIES) {
      await this.record(step, 'failed', detail)
      return this.end({ status: 'failed', exitReason: 'step_failed', error: message })
    }
    const dueAt = now + retryDelayMs(RETRY, failures, parts.random.fraction())
    await this.record(step, 'retrying', detail)
    const refusals = run.refusals + (error instanceof StepFault && error.isAnswered ? 1 : 0)
    await moveRun(tx.db, run.seq, { ...run, failures, refusals, dueAt })
    return 'rests'
  }

  /** The automation, active or paused, of a run that is still where it was. Ends the run where the automation is deleted. */
  private async findAutomation(): Promise<Automation | undefined> {
    const { tx, run } = this
    const { seq, automation } = run
    const found = await findRunBySeq(tx.db, seq)
    if (!found || !isSame(found, run)) return undefined
    const known = await findAutomationBySeq(tx.db, automation)
    if (known && known.deletedAt === null) return known
    await this.end({ status: 'cancelled', exitReason: 'automation_deleted' })
    return undefined
  }

  private async park(): Promise<Standing> {
    await parkRun(this.tx.db, this.run.seq)
    return 'rests'
  }

  /** @param counted steps that this is; what goes on after a wait was counted when it began */
  private async follow(step: KeptStep, outcome: StepOutcome, counted = 1): Promise<Standing> {
    const { tx, run, flow, now } = this
    const stepsDone = run.stepsDone + counted
    if (outcome.kind === 'wait') {
      const { until, event, detail } = outcome
      await this.record(step, 'waiting', detail)
      await moveRun(tx.db, run.seq, {
        ...{
          step: step.seq,
          wait: event ? 'event' : 'time',
          dueAt: until,
          stepsDone,
          failures: 0,
          refusals: 0,
        },
        ...{ waitEvent: event?.type ?? null, waitMessage: event?.messageId ?? null },
        lastMessageId: run.lastMessageId,
      })
      return until <= now ? 'goes_on' : 'rests'
    }
    await this.record(
      step,
      outcome.kind === 'done' && outcome.isSkipped === true ? 'skipped' : 'completed',
      outcome.detail,
    )
    if (outcome.kind === 'exit') return this.end({ status: 'completed', exitReason: outcome.exitReason })
    const next = outcome.goTo === undefined ? flow.after(step, outcome.pass) : flow.named(outcome.goTo)
    if (next === undefined && outcome.goTo !== undefined)
      return this.end({
        ...{ status: 'failed', exitReason: 'step_failed' },
        error: `the step ${outcome.goTo}, to which it leads, is not there`,
      })
    await moveRun(tx.db, run.seq, {
      ...{ step: next?.seq ?? null, wait: null, waitEvent: null, waitMessage: null, dueAt: now, stepsDone },
      ...{ failures: 0, refusals: 0, lastMessageId: outcome.messageId ?? run.lastMessageId },
    })
    if (next) return 'goes_on'
    return this.end({ status: 'completed', exitReason: 'end_of_flow' })
  }

  private endByLimit(): Promise<Standing> {
    const error = `it has taken ${MOST_STEPS_OF_A_RUN} steps, which is as many as a run may take`
    return this.end({ status: 'failed', exitReason: 'step_limit', error })
  }

  private async end(ending: Ending): Promise<Standing> {
    const { tx, run, flow, now, parts } = this
    const { workspaceId, isSandbox, contactId, triggerType } = run
    await endRuns(tx.db, [run.seq], ending, now)
    await changeRunCounts(tx.db, run.automation, { active: -1, [ending.status]: 1 })
    if (ending.status !== 'completed') return 'rests'
    const about = { automationId: flow.automation.id, runId: run.id, contactId, triggerType }
    await appendEvents(tx, [
      {
        kind: 'flow.completed',
        ...{ workspaceId, isSandbox, messageId: null, occurredAt: now },
        payload: { ...about, exitReason: ending.exitReason },
      },
    ])
    tx.onCommit(parts.onEvents)
    return 'rests'
  }

  private record({ id, type }: KeptStep, outcome: StepResult, detail?: Detail): Promise<void> {
    const { tx, run, now } = this
    return recordStep(tx.db, run.seq, {
      ...{ stepId: id, stepType: type, outcome, at: now },
      detail: detail && Object.keys(detail).length > 0 ? detail : null,
    })
  }
}

/** Preparing it sends a request to another server, which no transaction can undo. */
function hasOutsideEffects({ type }: KeptStep): boolean {
  return STEP_TYPE[type].isSlow === true
}

/** The run is where it was, and its automation is active. */
async function mayAct(db: Queries, run: Run): Promise<boolean> {
  const found = await findRunBySeq(db, run.seq)
  const automation = await findAutomationBySeq(db, run.automation)
  return (
    found !== undefined &&
    isSame(found, run) &&
    automation?.deletedAt === null &&
    automation.status === 'active'
  )
}

/** Neither woken nor moved, ended or parked since it was read. */
function isSame(one: Run, other: Run): boolean {
  return (
    one.endedAt === null &&
    one.dueAt !== null &&
    one.step === other.step &&
    one.wait === other.wait &&
    one.stepsDone === other.stepsDone &&
    one.failures === other.failures
  )
}
