/**
 * Retention rules of resources, and the jobs that apply them.
 *
 * Resources declare rules; the composition root turns them into jobs. By default a rule runs hourly, with the rules spread over the
 * hour so that long ones do not start together. Fails: throws a plain Error for a rule with an unknown key of `[retention]`.
 */
import type { Tx } from '../db/database.js'
import type { RemoveSome } from '../db/retention.js'
import type { Services } from '../db/services.js'
import { oldest, prune } from '../scheduler/prune.js'
import type { Job } from '../scheduler/scheduler.js'
import { openExpiryTime } from '../world/time/expiry-time.js'

export interface Retention {
  /** Name in the log, e.g. `bounces`. */
  readonly what: string
  /** Keys of `[retention]`, of which the shortest applies, or a fixed time in ms. */
  readonly keep: readonly string[] | number
  /** Cron expression, UTC; hourly if absent. */
  readonly schedule?: string
  /** @param before ms since epoch UTC; newer records are kept */
  readonly begin: (before: number) => RemoveSome | Promise<RemoveSome>
}

/** A rule whose steps each delete the oldest records. */
export function retentionRule(
  row: Omit<Retention, 'begin'>,
  remove: (db: Tx['db'], before: number, limit: number) => Promise<number>,
): Retention {
  return { ...row, begin: before => oldest((tx, limit) => remove(tx.db, before, limit)) }
}

export type RetentionParts = Pick<Services, 'database' | 'clock' | 'log'>

/** @param keptMs `[retention]`: by key, in ms; 0 = forever */
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

/** @returns undefined if all of them are kept forever */
function shortest(keys: readonly string[], keptMs: Readonly<Record<string, number>>): number | undefined {
  const limits = keys.flatMap(key => {
    const limitMs = keptMs[key]
    if (limitMs === undefined) throw new Error(`no resource has the key retention.${key}`)
    return limitMs === 0 ? [] : limitMs
  })
  return limits.length === 0 ? undefined : Math.min(...limits)
}
