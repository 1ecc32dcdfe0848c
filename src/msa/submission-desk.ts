/**
 * The door for many at once: submissions that wait for the same commit are taken in together, their rows in one insert each.
 *
 * Used by SMTP submission, where messages come one by one and very many; what is decided and stored is what `submit.ts` does.
 * Each hears of its own fate: a refusal of one leaves the others as they are. Fails: where the transaction fails, all of it.
 */
import { openUsage, type Usage } from '../accounts/sending-limit-store.js'
import type { Tx } from '../db/database.js'
import { acceptLetters } from './accept.js'
import type { Letter, Submitted } from './letter.js'
import { sortAllRecipients, type Recipient } from './recipients.js'
import { takeFromKeyLimit, toContent, type Submission, type SubmitParts } from './submit.js'

interface Waiting {
  readonly submission: Submission
  readonly resolve: (submitted: readonly Submitted[]) => void
  readonly reject: (error: unknown) => void
}

/** A few ms of work; what is left over goes into the next. */
const MOST_AT_ONCE = 64

export class SubmissionDesk {
  private readonly parts: SubmitParts
  private readonly waiting: Waiting[] = []
  /** A write is on its way that has not begun: it takes whatever waits when it does. */
  private isWriteWaiting = false

  constructor(parts: SubmitParts) {
    this.parts = parts
  }

  /** Only for mail that leaves at once and has no attachments of its own. @throws AppError rate_limited, limit_reached */
  submit(submission: Submission): Promise<readonly Submitted[]> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ submission, resolve, reject })
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
      .then(settle => settle())
      .catch((error: unknown) => {
        // Where it never began, those who wait would only meet the same.
        if (taken === undefined) this.isWriteWaiting = false
        for (const { reject } of taken ?? this.waiting.splice(0)) reject(error)
      })
  }

  /** @returns tells each how it ended; to be called after the commit */
  private async accept(tx: Tx, taken: readonly Waiting[]): Promise<() => void> {
    const endings: (() => void)[] = []
    for (const group of groupsOf(taken)) endings.push(...(await this.acceptGroup(tx, group)))
    return () => {
      for (const end of endings) end()
    }
  }

  /** @param group of one workspace, all live or all sandboxed */
  private async acceptGroup(tx: Tx, group: readonly Waiting[]): Promise<(() => void)[]> {
    const [first] = group
    if (first === undefined) return []
    const { workspace, principal } = first.submission
    const now = this.parts.clock.now()
    const sorted = await sortAllRecipients(
      tx.db,
      workspace.id,
      group.map(({ submission }) => submission.to),
    )
    const usage = principal.isSandbox ? undefined : await openUsage(tx.db, workspace, now)
    const letters: Letter[] = []
    const endings: (() => void)[] = []
    for (const [index, { submission, resolve, reject }] of group.entries())
      try {
        const recipients = sorted[index] ?? []
        if (usage) this.count(usage, submission, recipients)
        const submitted = recipients.map(one => ({ ...one, messageId: this.parts.newId() }))
        letters.push(this.toLetter(submission, submitted, now))
        endings.push(() => resolve(submitted))
      } catch (refusal) {
        endings.push(() => reject(refusal))
      }
    if (letters.length === 0) return endings
    await usage?.write()
    await acceptLetters(tx, this.parts, letters, principal.isSandbox, now)
    return endings
  }

  private count(usage: Usage, { principal }: Submission, recipients: readonly Recipient[]): void {
    const mailed = recipients.filter(one => one.skip === null).length
    usage.add(mailed)
    try {
      takeFromKeyLimit(this.parts.emailWindows, principal, mailed)
    } catch (refusal) {
      usage.takeBack(mailed)
      throw refusal
    }
  }

  private toLetter(submission: Submission, submitted: readonly Submitted[], now: number): Letter {
    const { contentId, reporting } = submission
    return {
      content: toContent(submission, contentId ?? this.parts.newId(), now),
      submitted,
      dueAt: now,
      ...(reporting === undefined ? {} : { reporting }),
    }
  }
}

/** In the order in which they came, within each group. */
function groupsOf(taken: readonly Waiting[]): Iterable<readonly Waiting[]> {
  const groups = new Map<string, Waiting[]>()
  for (const one of taken) {
    const { workspace, principal } = one.submission
    const name = `${workspace.id} ${principal.isSandbox}`
    const group = groups.get(name)
    if (group) group.push(one)
    else groups.set(name, [one])
  }
  return groups.values()
}
