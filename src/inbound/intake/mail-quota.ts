/**
 * How many octets of inbound mail lie in the database, and the bound on them: `inbound.keep_size`.
 *
 * Counted in memory from what the database holds at the start: the receiver adds what it writes, retention takes off what it
 * deletes. Beyond nine tenths of the bound the oldest mail that was read is deleted before its time, mail without a token
 * first; mail that waits to be read never is. Fails: as the database does.
 */
import type { Queries, Tx } from '../../db/database.js'
import { deleteProcessed, sumInboundOctets, type Removed } from '../inbound-mail-store.js'

/** Of the bound: where deleting begins, and where it ends. */
const HIGH = 0.9
const LOW = 0.8

export class MailQuota {
  /** Octets. */
  readonly limit: number
  private octets: number
  private isShrinking = false

  constructor(most: number, octets: number) {
    this.limit = most
    this.octets = octets
  }

  static async count(reader: Queries, most: number): Promise<MailQuota> {
    return new MailQuota(most, await sumInboundOctets(reader))
  }

  get total(): number {
    return this.octets
  }

  /** Whether so many octets more are within the bound. */
  fits(octets: number): boolean {
    return this.octets + octets <= this.limit
  }

  add(octets: number): void {
    this.octets += octets
  }

  subtract(octets: number): void {
    this.octets -= octets
  }

  /** Oldest first, at most `limit`. @returns how many there were */
  async removeBefore(tx: Tx, before: number, limit: number): Promise<number> {
    const unsigned = await this.remove(tx, { isSigned: false, before, limit })
    return unsigned.mails > 0
      ? unsigned.mails
      : (await this.remove(tx, { isSigned: true, before, limit })).mails
  }

  /** What is beyond the bound, at most `limit` mails. @returns how many there were */
  async removeExcess(tx: Tx, limit: number): Promise<number> {
    this.isShrinking = this.octets > this.limit * (this.isShrinking ? LOW : HIGH)
    if (!this.isShrinking) return 0
    const excess = this.octets - this.limit * LOW
    const unsigned = await this.remove(tx, { isSigned: false, limit, octets: excess })
    return unsigned.mails > 0
      ? unsigned.mails
      : (await this.remove(tx, { isSigned: true, limit, octets: excess })).mails
  }

  private async remove(tx: Tx, what: Parameters<typeof deleteProcessed>[1]): Promise<Removed> {
    const removed = await deleteProcessed(tx.db, what)
    tx.onCommit(() => this.subtract(removed.octets))
    return removed
  }
}
