/**
 * Starts a sandbox's scheduled mail when it is due, as the queue does for live mail; nothing leaves the machine.
 *
 * Opened by the composition root; `simulator.ts` reports what it scheduled. Starting and cancelling both delete the mail's row in a
 * transaction, so exactly one of them happens. Timers run at most 30 s, so that a changed system clock is noticed.
 * Never fails: database errors are logged and retried.
 */
import { describeError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { findSuppressed } from '../../deliverability/suppressions/suppression-store.js'
import { normalizedAddress } from '../../mail/address.js'
import { recordTransitions } from '../../messages/message-history.js'
import { markStarted } from '../../messages/message-status-store.js'
import type { Timer } from '../../world/time/clock.js'
import { deleteScheduled, listDue, nextDueAt, type DueMail } from './sandbox-schedule-store.js'
import { playOutcomes } from './simulator.js'

export type SandboxRunnerParts = Pick<Services, 'database' | 'clock' | 'log' | 'onEvents'>

/** Mails per transaction: a few milliseconds. */
const MAILS_AT_ONCE = 100
const LOOK_EVERY_MS = 30_000
const AGAIN_AFTER_MS = 5_000

export class SandboxRunner {
  private readonly parts: SandboxRunnerParts
  private timer: Timer | undefined
  /** When the timer fires, on the monotonic clock; Infinity without one. */
  private firesAt = Infinity
  private running: Promise<void> | undefined
  private isStopped = false

  constructor(parts: SandboxRunnerParts) {
    this.parts = parts
  }

  /** Starts at once what became due while the server was down. Also after `stop` has resolved. */
  start(): void {
    this.isStopped = false
    this.lookIn(0)
  }

  /** Call when mail was scheduled. @param dueAt ms since epoch UTC */
  noteScheduled(dueAt: number): void {
    this.lookIn(dueAt - this.parts.clock.now())
  }

  async stop(): Promise<void> {
    this.isStopped = true
    this.timer?.cancel()
    this.firesAt = Infinity
    await this.running
  }

  private lookIn(delayMs: number): void {
    const { clock } = this.parts
    const waitMs = Math.min(Math.max(0, delayMs), LOOK_EVERY_MS)
    if (this.isStopped || clock.monotonic() + waitMs >= this.firesAt) return
    this.timer?.cancel()
    this.firesAt = clock.monotonic() + waitMs
    this.timer = clock.after(waitMs, () => {
      this.firesAt = Infinity
      this.running = (this.running ?? Promise.resolve()).then(() => this.look())
    })
  }

  private async look(): Promise<void> {
    const { database, clock, log } = this.parts
    try {
      while (!this.isStopped && (await this.beginDue()) === MAILS_AT_ONCE);
      const next = this.isStopped ? undefined : await nextDueAt(database.reader)
      if (next !== undefined) this.lookIn(next - clock.now())
    } catch (error) {
      log.error('sandbox runner failed', { error: describeError(error) })
      this.lookIn(AGAIN_AFTER_MS)
    }
  }

  /** @returns number of mails started */
  private async beginDue(): Promise<number> {
    const { database, clock, onEvents } = this.parts
    const now = clock.now()
    // Avoids a write transaction if nothing is due.
    if ((await listDue(database.reader, now, 1)).length === 0) return 0
    return database.write(async tx => {
      const mails = await listDue(tx.db, now, MAILS_AT_ONCE)
      await begin(tx, mails, now)
      tx.onCommit(onEvents)
      return mails.length
    })
  }
}

async function begin(tx: Tx, mails: readonly DueMail[], now: number): Promise<void> {
  const ids = mails.map(({ messageId }) => messageId)
  await deleteScheduled(tx.db, ids)
  await markStarted(tx.db, ids, now)
  const suppressed = new Set(await suppressedSince(tx, mails))
  await recordTransitions(
    tx,
    [...suppressed].map(({ messageId }) => ({ kind: 'suppressed', messageId, at: now })),
  )
  await playOutcomes(
    tx,
    mails.filter(mail => !suppressed.has(mail)),
    now,
  )
}

/** Rechecks suppressions at delivery time, as the queue does for live mail. */
async function suppressedSince(tx: Tx, mails: readonly DueMail[]): Promise<DueMail[]> {
  const suppressed: DueMail[] = []
  for (const workspaceId of new Set(mails.map(mail => mail.workspaceId)))
    for (const isMarketing of [false, true]) {
      const own = mails.filter(one => one.workspaceId === workspaceId && one.isMarketing === isMarketing)
      const emails = own.map(({ to }) => normalizedAddress(to))
      const found = await findSuppressed(tx.db, workspaceId, emails, isMarketing)
      suppressed.push(...own.filter(({ to }) => found.has(normalizedAddress(to))))
    }
  return suppressed
}
