/**
 * Groups submissions by SMTP and single sends by REST that wait for the same commit, so that their rows are inserted together.
 *
 * Each submission gets its own result. If the transaction fails, all of its submissions fail; a submission whose answer cannot be kept
 * fails alone.
 */
import { keepAnswers, type Kept } from '../accounts/idempotency-store.js'
import type { Workspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { Tx } from '../db/database.js'
import type { Submission, SubmittedRecipient, SubmitParts } from './mail-submission.js'
import { submitEach } from './submit.js'

/** Without separate attachments. */
export interface GatheredSubmission {
  readonly workspace: Workspace
  readonly isSandbox: boolean
  readonly submission: Submission
  /** When the request came, before ids were generated, ms since epoch UTC; now if absent. */
  readonly arrivedAt?: number
  /** The answer to keep, for a request with an Idempotency-Key; stored in the same transaction. */
  readonly keep?: (recipients: readonly SubmittedRecipient[]) => Kept
}

interface Waiting extends GatheredSubmission {
  readonly arrivedAt: number
  readonly resolve: (recipients: readonly SubmittedRecipient[]) => void
  readonly reject: (error: unknown) => void
}

/** Recipients per transaction, unless one submission has more: a few milliseconds of work. */
const MAX_PER_TRANSACTION = 64

/** The transaction is rolled back, and its submissions are stored one by one. */
class AnswerNotKept extends Error {}

export class SubmissionGatherer {
  private readonly parts: SubmitParts
  private readonly waiting: Waiting[] = []
  /** A write is queued but not started; it takes everything waiting when it starts. */
  private isWriteWaiting = false

  constructor(parts: SubmitParts) {
    this.parts = parts
  }

  /** Resolves once the message is on disk. @throws AppError rate_limited, limit_reached, validation_error */
  async submit(one: GatheredSubmission): Promise<readonly SubmittedRecipient[]> {
    const { key, to } = one.submission
    const asking =
      key && !one.isSandbox
        ? this.parts.emailWindows.prepare(key.keyId, to.length, key.emailRateLimit)
        : undefined
    if (asking) await asking
    return new Promise((resolve, reject) => {
      this.waiting.push({ arrivedAt: this.parts.clock.now(), ...one, resolve, reject })
      this.write()
    })
  }

  private write(): void {
    if (this.isWriteWaiting || this.waiting.length === 0) return
    this.isWriteWaiting = true
    let taken: readonly Waiting[] | undefined
    this.parts.database
      .write(tx => {
        // A transaction that is retried keeps its submissions.
        if (taken === undefined) {
          this.isWriteWaiting = false
          taken = this.take()
          this.write()
        }
        return this.accept(tx, taken)
      })
      .then(settleAll => settleAll())
      .catch((error: unknown) => {
        // If the write never started, retrying for those waiting would fail the same way.
        if (taken === undefined) this.isWriteWaiting = false
        if (taken && error instanceof AnswerNotKept) void this.acceptAlone(taken)
        else for (const { reject } of taken ?? this.waiting.splice(0)) reject(error)
      })
  }

  private take(): readonly Waiting[] {
    let recipients = 0
    const end = this.waiting.findIndex(({ submission }, at) => {
      recipients += submission.to.length
      return at > 0 && recipients > MAX_PER_TRANSACTION
    })
    return this.waiting.splice(0, end === -1 ? this.waiting.length : end)
  }

  private async acceptAlone(taken: readonly Waiting[]): Promise<void> {
    for (const one of taken) {
      try {
        const settle = await this.parts.database.write(tx => this.accept(tx, [one]))
        settle()
      } catch (error) {
        one.reject(error)
      }
    }
  }

  /** @returns settles the callers' promises; to be called after the commit */
  private async accept(tx: Tx, taken: readonly Waiting[]): Promise<() => void> {
    const settlers: (() => void)[] = []
    for (const group of groupsOf(taken)) settlers.push(await this.acceptGroup(tx, group, taken.length > 1))
    return () => {
      for (const settle of settlers) settle()
    }
  }

  /** @param group same workspace, all live or all sandboxed; not empty @param isShared the transaction has others as well */
  private async acceptGroup(tx: Tx, group: readonly Waiting[], isShared: boolean): Promise<() => void> {
    const [{ workspace, isSandbox }] = group as [Waiting]
    const submissions = group.map(({ submission }) => submission)
    const now = Math.min(...group.map(({ arrivedAt }) => arrivedAt))
    const results = await submitEach(tx, this.parts, { workspace, isSandbox, submissions }, now)
    const kept = group.flatMap(({ keep }, at) => {
      const result = results[at]
      return keep && result && 'recipients' in result ? [keep(result.recipients)] : []
    })
    try {
      await keepAnswers(tx.db, kept)
    } catch (error) {
      throw error instanceof AppError && isShared
        ? new AnswerNotKept('an answer could not be kept', { cause: error })
        : error
    }
    return () => {
      for (const [at, { resolve, reject }] of group.entries()) {
        const result = results[at]
        if (result && 'recipients' in result) resolve(result.recipients)
        else reject(result?.refusal)
      }
    }
  }
}

/** Arrival order is kept within a group. */
function groupsOf(taken: readonly Waiting[]): Iterable<readonly Waiting[]> {
  const groups = new Map<string, Waiting[]>()
  for (const one of taken) {
    const name = `${one.workspace.id} ${one.isSandbox}`
    const group = groups.get(name)
    if (group) group.push(one)
    else groups.set(name, [one])
  }
  return groups.values()
}
