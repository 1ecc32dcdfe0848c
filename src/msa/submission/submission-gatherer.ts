/**
 * Submissions that wait for the same commit go through the door together, their rows in one insert each.
 *
 * Used by SMTP submission, where messages come one by one and very many. Each hears of its own fate. Fails: where the transaction
 * fails, all that were in it.
 */
import type { Workspace } from '../../accounts/workspace-store.js'
import type { Tx } from '../../db/database.js'
import type { Submission, SubmittedRecipient } from '../mail-submission.js'
import { submitEach } from '../submit.js'
import type { SubmitParts } from '../submit-parts.js'

/** Mail that leaves at once and has no attachments of its own. */
export interface GatheredSubmission {
  readonly workspace: Workspace
  readonly isSandbox: boolean
  readonly submission: Submission
}

interface Waiting extends GatheredSubmission {
  readonly resolve: (recipients: readonly SubmittedRecipient[]) => void
  readonly reject: (error: unknown) => void
}

/** A few ms of work; what is left over goes into the next. */
const MOST_AT_ONCE = 64

export class SubmissionGatherer {
  private readonly parts: SubmitParts
  private readonly waiting: Waiting[] = []
  /** A write is on its way that has not begun: it takes whatever waits when it does. */
  private isWriteWaiting = false

  constructor(parts: SubmitParts) {
    this.parts = parts
  }

  /** Resolves once it is on disk. @throws AppError rate_limited, limit_reached, validation_error */
  submit(one: GatheredSubmission): Promise<readonly SubmittedRecipient[]> {
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
      .write(
        tx => {
          this.isWriteWaiting = false
          taken = this.waiting.splice(0, MOST_AT_ONCE)
          this.write()
          return this.accept(tx, taken)
        },
        { callers: () => (taken ?? this.waiting).length },
      )
      .then(tellAll => tellAll())
      .catch((error: unknown) => {
        // Where it never began, those who wait would only meet the same.
        if (taken === undefined) this.isWriteWaiting = false
        for (const { reject } of taken ?? this.waiting.splice(0)) reject(error)
      })
  }

  /** @returns tells each how it ended; to be called after the commit */
  private async accept(tx: Tx, taken: readonly Waiting[]): Promise<() => void> {
    const told: (() => void)[] = []
    for (const group of groupsOf(taken)) told.push(await this.acceptGroup(tx, group))
    return () => {
      for (const tell of told) tell()
    }
  }

  /** @param group of one workspace, all live or all sandboxed; not empty */
  private async acceptGroup(tx: Tx, group: readonly Waiting[]): Promise<() => void> {
    const [{ workspace, isSandbox }] = group as [Waiting]
    const submissions = group.map(({ submission }) => submission)
    const now = this.parts.clock.now()
    const fates = await submitEach(tx, this.parts, { workspace, isSandbox, submissions }, now)
    return () => {
      for (const [at, { resolve, reject }] of group.entries()) {
        const fate = fates[at]
        if (fate && 'recipients' in fate) resolve(fate.recipients)
        else reject(fate?.refusal)
      }
    }
  }
}

/** In the order in which they came, within each group. */
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
