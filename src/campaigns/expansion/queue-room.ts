/**
 * How many more of a campaign's mails may be queued.
 *
 * At most `MAX_UNTRIED` wait for their first attempt: enough to keep delivery busy, few enough that an unsubscribe, pause or cancel takes
 * effect in time and the queue stays short. Mails waiting for a retry do not count towards it, up to `MAX_QUEUED` in total, so that
 * a host that is down does not delay the rest of the campaign.
 */
import type { Database } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import type { Campaign } from '../records/campaign.js'
import { countUntried } from './recipient-store.js'

/** Waiting for the first attempt. */
export const MAX_UNTRIED = 10_000
/** Including those waiting for a retry. */
export const MAX_QUEUED = 100_000
/** Less room than this is not worth a transaction. */
const MIN_ROOM = 250
/** Retried mails are counted after there has been no room for this long. */
const STUCK_MS = 5_000
/** And again at this interval. */
const COUNT_EVERY_MS = 30_000

export class QueueRoom {
  private readonly parts: { readonly database: Database; readonly clock: Clock }
  private readonly seq: number
  /** When room ran out, on the monotonic clock. */
  private fullSince: number | undefined
  private countedAt = -Infinity
  /** Mails already attempted, as last counted. */
  private tried = 0

  constructor(parts: { readonly database: Database; readonly clock: Clock }, seq: number) {
    this.parts = parts
    this.seq = seq
  }

  /** @returns 0: the campaign has to wait */
  async left(campaign: Pick<Campaign, 'queued' | 'pending' | 'isSandbox'>): Promise<number> {
    // Sandbox mail is never queued.
    if (campaign.isSandbox) return Infinity
    const left = Math.min(MAX_UNTRIED + this.tried, MAX_QUEUED) - campaign.queued
    if (left >= Math.min(MIN_ROOM, campaign.pending)) {
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
