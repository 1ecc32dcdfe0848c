/**
 * The journal by which nodes that share a database learn of each other's failed logins.
 *
 * Each attempt is a row, stored before it is checked; those of one moment share a transaction. Then the rows of the others are read. Rows are visible a little out of order, so the last few seconds are read again.
 */
import { describeError } from '../core/errors.js'
import type { Database } from '../db/database.js'
import type { Services } from '../db/services.js'
import {
  deleteLoginEvent,
  deleteLoginEvents,
  findLoginEvents,
  insertLoginEvent,
  loginTime,
} from './login-failure-store.js'
import type { AgedLoginEvent, LoginEvent, LoginGuardLimits, LoginJournal } from './login-guard.js'

export interface LoginJournalParts extends Pick<Services, 'clock' | 'log'> {
  readonly database: Pick<Database, 'write' | 'reader'>
  readonly nodeId: string
  readonly limits: Pick<LoginGuardLimits, 'lockoutMs'>
}

/** Rows of this node per second; a flood of failures beyond it is counted here only. */
const MAX_PER_SECOND = 200
/** Read at once; others are as old as what a guard evicts. */
const MAX_READ = 20_000
/** How much later than others a row may become visible. */
const OUT_OF_ORDER_MS = 3_000
const CLEAR_EVERY_MS = 60_000

export class SharedLoginJournal implements LoginJournal {
  private readonly parts: LoginJournalParts
  private second = -1
  private added = 0
  private clearedAt: number
  /** By the database's clock. */
  private readUntil: number | undefined
  /** Rows read already that may be read again, with their time. */
  private readonly seen = new Map<number, number>()
  private reading: Promise<void> | undefined
  private next: Promise<void> | undefined

  constructor(parts: LoginJournalParts) {
    this.parts = parts
    this.clearedAt = parts.clock.monotonic()
  }

  async add(event: LoginEvent): Promise<number | undefined> {
    const { database, clock, log, nodeId, limits } = this.parts
    const now = clock.monotonic()
    const second = Math.floor(now / 1_000)
    this.added = second === this.second ? this.added + 1 : 1
    this.second = second
    if (this.added > MAX_PER_SECOND) return undefined
    const mustClear = now - this.clearedAt >= CLEAR_EVERY_MS
    if (mustClear) this.clearedAt = now
    try {
      return await database.write(async tx => {
        if (mustClear) await deleteLoginEvents(tx.db, limits.lockoutMs)
        return insertLoginEvent(tx.db, nodeId, event)
      })
    } catch (error) {
      log.debug('login failures not shared', { error: describeError(error) })
      return undefined
    }
  }

  async remove(seq: number): Promise<void> {
    const { database, log } = this.parts
    try {
      await database.write(tx => deleteLoginEvent(tx.db, seq))
    } catch (error) {
      log.debug('login failures not shared', { error: describeError(error) })
    }
  }

  /** Callers that come during a read share the next one. */
  read(onEvent: (event: AgedLoginEvent) => void): Promise<void> {
    if (!this.reading) return (this.reading = this.readNow(onEvent))
    return (this.next ??= this.reading.then(() => {
      this.next = undefined
      return (this.reading = this.readNow(onEvent))
    }))
  }

  private async readNow(onEvent: (event: AgedLoginEvent) => void): Promise<void> {
    const { database, log, nodeId, limits } = this.parts
    try {
      this.readUntil ??= (await loginTime(database.reader)) - limits.lockoutMs
      const since = this.readUntil - OUT_OF_ORDER_MS
      const found = await findLoginEvents(database.reader, nodeId, since, MAX_READ)
      for (const event of found) {
        if (!this.seen.has(event.seq)) onEvent(event)
        this.seen.set(event.seq, event.at)
      }
      this.readUntil = Math.max(this.readUntil, found.at(-1)?.at ?? 0)
      for (const [seq, at] of this.seen) if (at < this.readUntil - OUT_OF_ORDER_MS) this.seen.delete(seq)
    } catch (error) {
      log.debug('login failures not shared', { error: describeError(error) })
    } finally {
      this.reading = undefined
    }
  }
}
