/**
 * How many mails of a campaign the queue may have in addition.
 *
 * It has at most some thousand that were not tried yet: enough to keep delivery busy, few enough that one who unsubscribes, a pause, or a
 * cancel still comes in time, and that the queue stays short. Mails that wait for another attempt, of a host that is down, are left out of
 * that up to a bound of their own, so that they hold up nobody else's. Asked by the runner before each hand-over. Fails: as the database
 * does.
 */
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import type { Campaign } from '../records/campaign.js'
import { countUntried } from './recipient-store.js'

/** Not tried yet. */
export const MOST_UNTRIED = 10_000
/** With those that are tried again. */
export const MOST_QUEUED = 100_000
/** It is worth a transaction once there is room for so many. */
const FEWEST = 250
/** Without any room for so long, those that are tried again are counted. */
const STUCK_MS = 5_000
/** And then from time to time. */
const COUNT_EVERY_MS = 30_000

export class QueueRoom {
  private readonly parts: { readonly database: Database; readonly clock: Clock }
  private readonly seq: number
  /** Since when there is no room, on the monotonic clock. */
  private fullSince: number | undefined
  private countedAt = -Infinity
  /** Mails that were tried already, when they were last counted. */
  private tried = 0

  constructor(parts: { readonly database: Database; readonly clock: Clock }, seq: number) {
    this.parts = parts
    this.seq = seq
  }

  /** @returns 0: it has to wait */
  async left(campaign: Pick<Campaign, 'queued' | 'pending' | 'isSandbox'>): Promise<number> {
    // Nothing of a sandbox is ever queued.
    if (campaign.isSandbox) return Infinity
    const left = Math.min(MOST_UNTRIED + this.tried, MOST_QUEUED) - campaign.queued
    if (left >= Math.min(FEWEST, campaign.pending)) {
      this.fullSince = undefined
      return left
    }
    await this.countWhereStuck(campaign.queued)
    return 0
  }

  private async countWhereStuck(queued: number): Promise<void> {
    const { database, clock } = this.parts
    const now = clock.monotonic()
    this.fullSince ??= now
    if (now - this.fullSince < STUCK_MS || now - this.countedAt < COUNT_EVERY_MS) return
    this.countedAt = now
    this.tried = Math.max(0, queued - (await countUntried(database.slowReader, this.seq)))
  }
}
