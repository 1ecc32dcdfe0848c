/**
 * Walks through an automation for one contact without any effect, and tells what would happen.
 *
 * The steps are really taken, in a transaction that is then rolled back, so conditions see what earlier steps changed, and mail is skipped
 * for the same reasons as in a run. Time does not pass: the clock of the walk jumps to the end of each wait. Web requests are not sent and
 * count as answered. Awaited events all happen at once, or never.
 */
import type { Contact } from '../../audience/contacts/contact.js'
import { findContact } from '../../audience/contacts/contacts.js'
import { AppError, describeError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { isStorageError } from '../../db/faults/transient-error.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation, Step } from '../flows/automation.js'
import { pathsOf } from '../flows/paths.js'
import type { PathName } from '../flows/path-name.js'
import type { Detail, ExecuteStep, StepOutcome } from '../steps/step-type.js'
import { STEP_TYPE } from '../steps/step-types.js'
import { enter, type Refusal } from './enter.js'
import type { Run } from './run.js'

/** A flow can wait in a loop forever. */
export const MAX_DRY_STEPS = 100

export interface DryStep {
  readonly step: Step
  /** When the step begins, ms since epoch UTC. */
  readonly at: number
  readonly outcome: 'completed' | 'skipped' | 'failed'
  /** Null: the run ends here. */
  readonly path: PathName | null
  readonly detail: Detail
}

export interface DryRun {
  readonly startedAt: number
  /** Why the contact would not enter; the steps tell what would happen if it did. */
  readonly refusal: Refusal | undefined
  readonly steps: readonly DryStep[]
  readonly endsAt: number
  readonly exitReason: 'end_of_flow' | 'moved_to_flow' | 'step_failed' | 'step_limit'
}

interface Question {
  readonly automation: Automation
  readonly steps: readonly Step[]
  readonly contact: Contact
  readonly triggerData: Readonly<Record<string, unknown>>
  readonly doEventsHappen: boolean
}

/** Rolls the transaction back. */
class Undo extends Error {
  readonly result: DryRun

  constructor(result: DryRun) {
    super('a dry run is undone')
    this.result = result
  }
}

type Prepared = ExecuteStep | { readonly error: unknown }

/** @throws AppError unavailable */
export async function dryRun(parts: FlowParts, question: Question): Promise<DryRun> {
  const run = runOf(question, parts.clock.now())
  const prepared = new Map<Step, Prepared>()
  for (const step of question.steps)
    if (step.type !== 'webhook') prepared.set(step, await prepare(parts, question, step, run))
  try {
    return await parts.database.write(
      async tx => {
        throw new Undo(await new Walk(parts, tx, question, prepared, run).walk())
      },
      { isLong: true },
    )
  } catch (error) {
    if (error instanceof Undo) return error.result
    throw error
  }
}

async function prepare(parts: FlowParts, { automation }: Question, step: Step, run: Run): Promise<Prepared> {
  try {
    return await STEP_TYPE[step.type].prepare({ parts, automation, step, run })
  } catch (error) {
    if (isStorageError(error)) throw error
    return { error }
  }
}

function runOf({ automation, contact, triggerData }: Question, now: number): Run {
  return {
    seq: -1,
    id: automation.id,
    automation: automation.seq,
    workspaceId: automation.workspaceId,
    contactId: contact.id,
    contactEmail: contact.email,
    isSandbox: automation.isSandbox,
    status: 'active',
    step: null,
    wait: null,
    waitEvent: null,
    waitMessage: null,
    dueAt: now,
    parkedDueAt: null,
    stepsDone: 0,
    failures: 0,
    refusals: 0,
    lastMessageId: null,
    triggerType: 'api',
    flowVersion: automation.version,
    triggerData,
    exitReason: null,
    error: null,
    startedAt: now,
    endedAt: null,
  }
}

class Walk {
  private readonly parts: FlowParts
  private readonly tx: Tx
  private readonly question: Question
  private readonly prepared: ReadonlyMap<Step, Prepared>
  private readonly taken: DryStep[] = []
  private readonly startedAt: number
  private run: Run
  private now: number

  constructor(parts: FlowParts, tx: Tx, question: Question, prepared: ReadonlyMap<Step, Prepared>, run: Run) {
    this.parts = parts
    this.tx = tx
    this.question = question
    this.prepared = prepared
    this.run = run
    this.startedAt = run.startedAt
    this.now = run.startedAt
  }

  async walk(): Promise<DryRun> {
    const refusal = await this.findRefusal()
    const exitReason = await this.takeSteps()
    const { startedAt, taken: steps, now: endsAt } = this
    return { startedAt, refusal, steps, endsAt, exitReason }
  }

  private async findRefusal(): Promise<Refusal | undefined> {
    const { automation, contact, triggerData } = this.question
    const [entry] = await enter(this.parts, this.tx, automation, [{ contactId: contact.id, triggerData }], {
      triggerType: 'api',
    })
    return entry?.refusal
  }

  private async takeSteps(): Promise<DryRun['exitReason']> {
    const { steps } = this.question
    let step = steps[0]
    while (step) {
      if (this.taken.length >= MAX_DRY_STEPS) return 'step_limit'
      const current: Step = step
      const path = await this.take(current)
      if (path === undefined) return this.taken.at(-1)?.outcome === 'failed' ? 'step_failed' : 'moved_to_flow'
      step = pathsOf(current, steps).find(({ name }) => name === path)?.to
    }
    return 'end_of_flow'
  }

  /** @returns the way the run goes on; undefined if it ends */
  private async take(step: Step): Promise<PathName | undefined> {
    const at = this.now
    const record = (outcome: DryStep['outcome'], path: PathName | null, detail: Detail = {}) => {
      this.taken.push({ step, at, outcome, path, detail })
      return path ?? undefined
    }
    let outcome: StepOutcome
    try {
      outcome = await this.execute(step)
    } catch (error) {
      if (isStorageError(error)) throw error
      return record('failed', null, { error: describeError(error) })
    }
    if (outcome.kind === 'exit') return record('completed', null, outcome.detail)
    if (outcome.kind === 'wait') {
      const { detail, event, until } = outcome
      const happens = event !== undefined && this.question.doEventsHappen
      if (!happens) this.now = Math.max(at, until)
      const path = event === undefined ? 'next' : happens ? 'event' : 'timeout'
      return record('completed', path, detail)
    }
    this.run = { ...this.run, lastMessageId: outcome.messageId ?? this.run.lastMessageId }
    const isSkipped = outcome.isSkipped === true
    return record(isSkipped ? 'skipped' : 'completed', outcome.path ?? 'next', outcome.detail)
  }

  private async execute(step: Step): Promise<StepOutcome> {
    const { parts, tx, now, question } = this
    const { automation } = question
    if (step.type === 'webhook') return { kind: 'done', detail: describeRequest(step) }
    const prepared = this.prepared.get(step)
    if (!prepared) throw new Error('the step was not prepared')
    if ('error' in prepared) throw prepared.error
    const contact = await findContact(tx.db, automation.workspaceId, { id: question.contact.id })
    if (!contact) throw new AppError('contact_not_found', 'no such contact')
    // A sandbox does not wait; what would happen live is more telling.
    const isSandbox = STEP_TYPE[step.type].waits === true ? false : this.run.isSandbox
    const run = { ...this.run, isSandbox }
    return prepared({ parts, automation, step, run, tx, contact, now })
  }
}

/** Without what may be secret in the address. */
function describeRequest({ config }: Step): Detail {
  const url = typeof config['url'] === 'string' ? config['url'] : ''
  return { method: config['method'], host: /^https?:\/\/([^/?#]+)/i.exec(url)?.[1] ?? '' }
}
