/**
 * Who may use how many of all connections (`mta.connections`): so that destinations that never answer, however many they are,
 * take nothing from those that do, and campaigns nothing from single mails.
 *
 * Used by the schedule. Pure accounting: says how many more may begin, and is told what begins and ends.
 *
 *   proven     answered lately                          three quarters, less what is set aside
 *   new        not asked yet, or long ago               three quarters of the last quarter
 *   doubtful   asked, and did not answer                half of the last quarter; together no more than that quarter
 *   aside      broken off but past the final dot,       a quarter at most
 *              so it has to be waited for
 *
 * Of each share campaigns have three quarters at most. Every share has room for one at least, while all together never
 * have more than there are.
 */

/** What is known of a site's willingness to answer. */
export type Standing = 'proven' | 'new' | 'doubtful'

export const STANDINGS: readonly Standing[] = ['new', 'proven', 'doubtful']

/** Connections in use, of one standing. */
interface Used {
  all: number
  bulk: number
}

export class ConnectionShares {
  private readonly total: number
  private readonly limits: Readonly<Record<Standing | 'strangers' | 'aside', number>>
  private readonly used: Readonly<Record<Standing, Used>> = {
    proven: { all: 0, bulk: 0 },
    new: { all: 0, bulk: 0 },
    doubtful: { all: 0, bulk: 0 },
  }
  private detached = 0

  constructor(total: number) {
    this.total = total
    const strangers = share(total, 1 / 4)
    this.limits = {
      proven: Math.max(1, total - strangers),
      strangers,
      new: Math.ceil(strangers * (3 / 4)),
      doubtful: share(strangers, 1 / 2),
      aside: Math.floor(total / 4),
    }
  }

  /** How many more may begin. */
  available(standing: Standing, isBulk: boolean): number {
    const { proven, new: fresh, doubtful } = this.used
    const strangers = fresh.all + doubtful.all
    const inAll = this.total - proven.all - strangers - this.detached
    const ofShare =
      standing === 'proven'
        ? Math.max(1, this.limits.proven - this.detached) - proven.all
        : Math.min(this.limits[standing] - this.used[standing].all, this.limits.strangers - strangers)
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
   * It no longer counts in its share: nobody can end it before the other side does.
   *
   * @returns whether there was room for that
   */
  detach(standing: Standing, isBulk: boolean): boolean {
    if (this.detached >= this.limits.aside) return false
    this.detached += 1
    this.release(standing, isBulk)
    return true
  }

  /** One that was set aside has ended. */
  endDetached(): void {
    this.detached -= 1
  }
}

function share(total: number, fraction: number): number {
  return Math.max(1, Math.floor(total * fraction))
}
