/**
 * Groups SMTP submissions waiting for the same commit, so that their rows are inserted together.
 *
 * Each submission gets its own result. If the transaction fails, all of its submissions fail.
 */
import type { Workspace } from '../../accounts/workspace-store.js'
import type { Tx } from '../../db/database.js'
import type { Submission, SubmittedRecipient, SubmitParts } from '../mail-submission.js'
import { submitEach } from '../submit.js'

/** Mail due at once, without separate attachments. */
export interface GatheredSubmission {
  readonly workspace: Workspace
  readonly isSandbox: boolean
  readonly submission: Submission
}

interface Waiting extends GatheredSubmission {
  readonly resolve: (recipients: readonly SubmittedRecipient[]) => void
  readonly reject: (error: unknown) => void
}

/** Submissions per transaction: a few milliseconds of work. */
const MAX_PER_TRANSACTION = 64

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
      this.waiting.push({ ...one, resolve, reject })
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
          taken = this.waiting.splice(0, MAX_PER_TRANSACTION)
          this.write()
        }
        return this.accept(tx, taken)
      })
      .then(settleAll => settleAll())
      .catch((error: unknown) => {
        // If the write never started, retrying for those waiting would fail the same way.
        if (taken === undefined) this.isWriteWaiting = false
        for (const { reject } of taken ?? this.waiting.splice(0)) reject(error)
      })
  }

  /** @returns settles the callers' promises; to be called after the commit */
  private async accept(tx: Tx, taken: readonly Waiting[]): Promise<() => void> {
    const settlers: (() => void)[] = []
    for (const group of groupsOf(taken)) settlers.push(await this.acceptGroup(tx, group))
    return () => {
      for (const settle of settlers) settle()
    }
  }

  /** @param group same workspace, all live or all sandboxed; not empty */
  private async acceptGroup(tx: Tx, group: readonly Waiting[]): Promise<() => void> {
    const [{ workspace, isSandbox }] = group as [Waiting]
    const submissions = group.map(({ submission }) => submission)
    const now = this.parts.clock.now()
    const results = await submitEach(tx, this.parts, { workspace, isSandbox, submissions }, now)
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
