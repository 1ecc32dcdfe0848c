/**
 * What is to be deleted of a resource's records once it is old, and the jobs that do it.
 *
 * Resources declare the rows, the composition root makes jobs of them. Where a row says no more, it runs once an hour, at a minute
 * of its own, so that no two long ones begin together. Fails: throws a plain Error for a row that names a key of `[retention]`
 * which no resource has.
 */
import type { Database, Tx } from '../db/database.js'
import type { RemoveSome } from '../db/retention.js'
import { oldest, prune } from '../scheduler/prune.js'
import type { Job } from '../scheduler/scheduler.js'
import type { Clock } from '../world/time/clock.js'
import { openExpiryTime } from '../world/time/expiry-time.js'
import type { Log } from '../world/log.js'

export interface Retention {
  /** As the log names it, e.g. `bounces`. */
  readonly what: string
  /** Keys of `[retention]`, of which the shortest counts, or how long in ms. */
  readonly keep: readonly string[] | number
  /** Cron expression, UTC; hourly where absent. */
  readonly schedule?: string
  /** @param before ms since epoch UTC; what is younger stays */
  readonly begin: (before: number) => RemoveSome | Promise<RemoveSome>
}

/** For records of which each step deletes the oldest. */
export function deletesOldest(
  row: Omit<Retention, 'begin'>,
  remove: (db: Tx['db'], before: number, limit: number) => Promise<number>,
): Retention {
  return { ...row, begin: before => oldest((tx, limit) => remove(tx.db, before, limit)) }
}

export interface RetentionParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

/** @param keptMs `[retention]`: by key, in ms; 0 = for ever */
export function retentionJobs(
  parts: RetentionParts,
  rows: readonly Retention[],
  keptMs: Readonly<Record<string, number>>,
): Job[] {
  const expiryTime = openExpiryTime(parts.clock)
  return rows.flatMap(({ what, keep, schedule, begin }, place) => {
    const keepMs = typeof keep === 'number' ? keep : shortest(keep, keptMs)
    if (keepMs === undefined) return []
    return {
      name: `prune ${what}`,
      schedule: schedule ?? `${Math.floor((60 * place) / rows.length)} * * * *`,
      run: async stopping => prune(parts, what, await begin(expiryTime() - keepMs), stopping),
    }
  })
}

/** @returns undefined where all of them are for ever */
function shortest(keys: readonly string[], keptMs: Readonly<Record<string, number>>): number | undefined {
  const limits = keys.flatMap(key => {
    const limitMs = keptMs[key]
    if (limitMs === undefined) throw new Error(`no resource has the key retention.${key}`)
    return limitMs === 0 ? [] : limitMs
  })
  return limits.length === 0 ? undefined : Math.min(...limits)
}
