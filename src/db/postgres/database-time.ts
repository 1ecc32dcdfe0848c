/**
 * Keeps this process's clock at the database's time, since clocks of machines disagree: due times, leases and limits of several nodes are
 * compared with each other.
 *
 * A clock that differs by less than `TOLERANCE_MS` is left alone. How long the answer took does not matter: the database's time lies between
 * those of question and answer, or the clock is wrong.
 */
import { sql } from 'kysely'
import type { Queries } from '../database.js'
import type { Log } from '../../world/log.js'
import type { Clock } from '../../world/time/clock.js'

const CHECK_MS = 5_000
const TOLERANCE_MS = 500

export class DatabaseTime {
  private readonly parts: { readonly clock: Clock; readonly log: Log; readonly reader: Queries }
  private isClosed = false

  constructor(parts: DatabaseTime['parts']) {
    this.parts = parts
  }

  /** Checks now. @throws `unavailable` */
  async check(): Promise<void> {
    const { clock, log, reader } = this.parts
    if (!clock.correct) return
    const asked = clock.now()
    const { rows } = await sql<{
      now: number
    }>`select (extract(epoch from clock_timestamp()) * 1000)::bigint as now`.execute(reader)
    const answered = clock.now()
    const now = rows[0]?.now ?? asked
    const byMs = now < asked ? now - asked : Math.max(0, now - answered)
    if (Math.abs(byMs) <= TOLERANCE_MS) return
    clock.correct(byMs)
    log.warn('clock corrected', { byMs: Math.round(byMs) })
  }

  /** Checks again and again, until closed. */
  start(): void {
    this.parts.clock.after(CHECK_MS, () => {
      if (this.isClosed) return
      // Unanswered, the next one will tell.
      void this.check()
        .catch(() => {})
        .then(() => this.start())
    })
  }

  close(): void {
    this.isClosed = true
  }
}
