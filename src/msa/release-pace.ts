/**
 * Gives out due times to mail that is released to the queue little by little, no more in a minute than a rate allows.
 *
 * Used where many are submitted at once. The queue's own due time does the waiting, so a restart changes nothing. Pure.
 */
const MINUTE_MS = 60_000

export class ReleasePace {
  /** When the last one falls due, ms since epoch UTC; now where nobody waits. */
  lastDueAt: number
  private readonly firstAt: number
  private readonly stepMs: number
  private given = 0

  /** @param perMinute 0: no limit @param lastRelease when the last mail before these falls due, if there was any */
  constructor(perMinute: number, lastRelease: number | undefined, now: number) {
    this.stepMs = perMinute === 0 ? 0 : MINUTE_MS / perMinute
    this.firstAt =
      perMinute === 0 || lastRelease === undefined ? now : Math.max(now, Math.ceil(lastRelease + this.stepMs))
    this.lastDueAt = now
  }

  /** @param mails that fall due together: a message and its copies */
  next(mails: number): number {
    const dueAt = Math.ceil(this.firstAt + this.given * this.stepMs)
    this.given += mails
    // Copies leave with their message; whoever comes next waits for them as well.
    if (mails > 0) this.lastDueAt = Math.ceil(this.firstAt + (this.given - 1) * this.stepMs)
    return dueAt
  }
}
