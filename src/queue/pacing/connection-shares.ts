/**
 * Divides all connections (`mta.connections`) so that unresponsive destinations, however many, take nothing from
 * responsive ones, and campaigns nothing from single mails. Pure accounting, used by the schedule.
 *
 *   proven     has answered lately                     three quarters, minus detached ones
 *   new        not tried yet, or long ago              three quarters of the last quarter
 *   doubtful   tried, and did not answer               half of the last quarter; together with new at most that quarter
 *   detached   aborted, but past the final dot         a quarter at most
 *
 * Campaigns get at most three quarters of each share. Every share has room for at least one connection.
 */

/** Whether a site has answered lately. */
export type Standing = 'proven' | 'new' | 'doubtful'

export const STANDINGS: readonly Standing[] = ['new', 'proven', 'doubtful']

interface Used {
  all: number
  bulk: number
}

export class ConnectionShares {
  private readonly total: number
  private readonly limits: Readonly<Record<Standing | 'unproven' | 'detached', number>>
  private readonly used: Readonly<Record<Standing, Used>> = {
    proven: { all: 0, bulk: 0 },
    new: { all: 0, bulk: 0 },
    doubtful: { all: 0, bulk: 0 },
  }
  private detached = 0

  constructor(total: number) {
    this.total = total
    const unproven = share(total, 1 / 4)
    this.limits = {
      proven: Math.max(1, total - unproven),
      unproven,
      new: Math.ceil(unproven * (3 / 4)),
      doubtful: share(unproven, 1 / 2),
      detached: Math.floor(total / 4),
    }
  }

  available(standing: Standing, isBulk: boolean): number {
    const { proven, new: fresh, doubtful } = this.used
    const unproven = fresh.all + doubtful.all
    const inAll = this.total - proven.all - unproven - this.detached
    const ofShare =
      standing === 'proven'
        ? Math.max(1, this.limits.proven - this.detached) - proven.all
        : Math.min(this.limits[standing] - this.used[standing].all, this.limits.unproven - unproven)
    const ofBulk = isBulk ? share(this.limits[standing], 3 / 4) - this.used[standing].bulk : Infinity
    return Math.max(0, Math.min(inAll, ofShare, ofBulk))
  }

  take(standing: Standing, isBulk: boolean, count: number): void {
    const used = this.used[standing]
    used.all += count
    if (isBulk) used.bulk += count
  }

  release(standing: Standing, isBulk: boolean, count = 1): void {
    this.take(standing, isBulk, -count)
  }

  /**
   * Moves a delivery out of its share: it cannot be aborted before the server answers.
   *
   * @returns false if too many are detached already
   */
  detach(standing: Standing, isBulk: boolean): boolean {
    if (this.detached >= this.limits.detached) return false
    this.detached += 1
    this.release(standing, isBulk)
    return true
  }

  endDetached(): void {
    this.detached -= 1
  }
}

function share(total: number, fraction: number): number {
  return Math.max(1, Math.floor(total * fraction))
}
