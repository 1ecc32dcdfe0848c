/**
 * Rates and sites for `postroad top` and `postroad queue`.
 *
 * `RecentRates` counts the attempts of the last minute, reading only new rows of the attempt log on each poll.
 * `locateAll` asks DNS directly, so its answer may be newer than what the running server uses. Neither writes.
 */
import type { Queries } from '../../db/database.js'
import { readAttemptTail, type EndedAttempt } from './queue-status-store.js'
import type { LocateSite } from '../delivery-agent.js'

const MINUTE_MS = 60_000

export interface Rates {
  readonly delivered: number
  readonly deferred: number
  /** Rejected permanently, or impossible to send. */
  readonly bounced: number
}

export const NO_RATES: Rates = { delivered: 0, deferred: 0, bounced: 0 }

export class RecentRates {
  private readonly reader: Queries
  /** Newest first. */
  private attempts: readonly EndedAttempt[] = []
  private seenSeq = 0

  constructor(reader: Queries) {
    this.reader = reader
  }

  async poll(now: number): Promise<Map<string, Rates>> {
    const fresh = await readAttemptTail(this.reader, this.seenSeq, now - MINUTE_MS)
    this.seenSeq = Math.max(this.seenSeq, ...fresh.slice(0, 1).map(({ seq }) => seq))
    this.attempts = [...fresh, ...this.attempts].filter(({ finishedAt }) => finishedAt > now - MINUTE_MS)
    const rates = new Map<string, Rates>()
    for (const { destination, kind } of this.attempts) {
      const counted = kind === 'unsendable' ? 'bounced' : kind
      const sum = rates.get(destination) ?? NO_RATES
      rates.set(destination, { ...sum, [counted]: sum[counted] + 1 })
    }
    return rates
  }
}

export function addRates(rates: Iterable<Rates>): Rates {
  let sum = NO_RATES
  for (const { delivered, deferred, bounced } of rates)
    sum = {
      delivered: sum.delivered + delivered,
      deferred: sum.deferred + deferred,
      bounced: sum.bounced + bounced,
    }
  return sum
}

const MAX_LOOKUPS = 100

export async function locateAll(
  destinations: readonly string[],
  locateSite: LocateSite,
): Promise<Map<string, string>> {
  const sites = new Map<string, string>()
  const waiting = destinations.values()
  const locateNext = async (): Promise<void> => {
    for (const destination of waiting) sites.set(destination, (await locateSite(destination)).name)
  }
  await Promise.all(Array.from({ length: MAX_LOOKUPS }, locateNext))
  return sites
}

export async function destinationsOf(
  site: string,
  destinations: readonly string[],
  locateSite: LocateSite,
): Promise<string[]> {
  const sites = await locateAll(destinations, locateSite)
  return destinations.filter(destination => sites.get(destination) === site)
}
