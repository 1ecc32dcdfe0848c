/**
 * The quota of stored inbound mail: `inbound.keep_size`.
 *
 * Counted in memory, starting from the database: the receiver adds what it writes, deletion subtracts. Where other nodes receive and
 * delete as well, it is counted again now and then. Above nine
 * tenths of the quota the oldest processed mail is deleted early, unsigned mail first; unprocessed mail never is.
 */
import type { Queries, Tx } from '../../db/database.js'
import { deleteProcessed, sumInboundOctets, type Removed } from '../inbound-mail-store.js'

/** Shares of the limit at which deletion begins and ends. */
const HIGH = 0.9
const LOW = 0.8

export class MailQuota {
  /** Bytes. */
  readonly limit: number
  private octets: number
  /** Of mail that is still being received. */
  private underWay = 0
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

  fits(octets: number): boolean {
    return this.octets + octets <= this.limit
  }

  /** Received, and not stored yet. */
  add(octets: number): void {
    this.octets += octets
    this.underWay += octets
  }

  /** Call when added mail is stored. */
  noteStored(octets: number): void {
    this.underWay -= octets
  }

  /** Call when added mail could not be stored. */
  drop(octets: number): void {
    this.octets -= octets
    this.underWay -= octets
  }

  /** Other nodes may have stored or deleted mail. */
  async recount(reader: Queries): Promise<void> {
    this.octets = (await sumInboundOctets(reader)) + this.underWay
  }

  /** Deletes the oldest, at most `limit`. @returns how many */
  async removeBefore(tx: Tx, before: number, limit: number): Promise<number> {
    const unsigned = await this.remove(tx, { isSigned: false, before, limit })
    return unsigned.mails > 0
      ? unsigned.mails
      : (await this.remove(tx, { isSigned: true, before, limit })).mails
  }

  /** Deletes what exceeds the quota, at most `limit` mails. @returns how many */
  async removeExcess(tx: Tx, limit: number): Promise<number> {
    const isShrinking = this.octets > this.limit * (this.isShrinking ? LOW : HIGH)
    tx.onCommit(() => (this.isShrinking = isShrinking))
    if (!isShrinking) return 0
    const excess = this.octets - this.limit * LOW
    const unsigned = await this.remove(tx, { isSigned: false, limit, octets: excess })
    return unsigned.mails > 0
      ? unsigned.mails
      : (await this.remove(tx, { isSigned: true, limit, octets: excess })).mails
  }

  private async remove(tx: Tx, what: Parameters<typeof deleteProcessed>[1]): Promise<Removed> {
    const removed = await deleteProcessed(tx.db, what)
    tx.onCommit(() => (this.octets -= removed.octets))
    return removed
  }
}
