/**
 * Assigns due times so that a batch is released to the queue no faster than its rate.
 *
 * The due times are stored in the queue, so a restart does not change the pace. Pure.
 */
const MINUTE_MS = 60_000

export class ReleasePace {
  /** When the last mail is due, ms since epoch UTC; now if none was paced. */
  lastDueAt: number
  private readonly firstAt: number
  private readonly stepMs: number
  private given = 0

  /** @param perMinute 0: no limit @param lastRelease when the previous batch's last mail is due, if there is one */
  constructor(perMinute: number, lastRelease: number | undefined, now: number) {
    this.stepMs = perMinute === 0 ? 0 : MINUTE_MS / perMinute
    this.firstAt =
      perMinute === 0 || lastRelease === undefined ? now : Math.max(now, Math.ceil(lastRelease + this.stepMs))
    this.lastDueAt = now
  }

  /** @param mails due together: a message and its copies */
  next(mails: number): number {
    const dueAt = Math.ceil(this.firstAt + this.given * this.stepMs)
    this.given += mails
    // Copies are due with their message but use up the rate, so the next message waits for them too.
    if (mails > 0) this.lastDueAt = Math.ceil(this.firstAt + (this.given - 1) * this.stepMs)
    return dueAt
  }
}
