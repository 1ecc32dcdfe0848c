/**
 * Which counters of a campaign's report an event belongs to: its hour or day, and the recipient's mailbox provider.
 *
 * A campaign has at most 96 hours, 90 days and some twenty providers, whatever it was sent to. Runs in the transaction that updates the
 * campaign's counts.
 */
import { ispName } from '../../deliverability/bounces/isp-name.js'
import type { Queries } from '../../db/database.js'
import { addressDomain } from '../../mail/address.js'
import type { Counted } from '../model/campaign-store.js'
import {
  addToProviders,
  addToTimes,
  findStarts,
  PROVIDER_COUNTS,
  TIME_COUNTS,
  type ProviderCount,
  type TimeCount,
} from './report-store.js'

/** Counts added by one event about a recipient's mail. */
export interface Noted {
  readonly campaign: number
  /** Ms since epoch UTC. */
  readonly at: number
  /** The recipient's address. */
  readonly to: string
  readonly counted: Counted & { readonly machineOpens?: number; readonly machineClicks?: number }
}

export const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** Hours are counted up to the fourth midnight UTC after the start. */
const DAYS_BY_HOUR = 4
/** Later events are in the campaign's counts alone. */
const MAX_DAYS = 90

export interface Bucket {
  /** Ms since epoch UTC. */
  readonly startsAt: number
  readonly lengthMs: number
}

/** The hour or day of a moment; both in UTC. @returns undefined before the start and long after it */
export function bucketOf(startedAt: number, at: number): Bucket | undefined {
  const firstDay = Math.floor(startedAt / DAY_MS) * DAY_MS
  if (at < Math.floor(startedAt / HOUR_MS) * HOUR_MS || at >= firstDay + MAX_DAYS * DAY_MS) return undefined
  const lengthMs = at < firstDay + DAYS_BY_HOUR * DAY_MS ? HOUR_MS : DAY_MS
  return { startsAt: Math.floor(at / lengthMs) * lengthMs, lengthMs }
}

/** All buckets from the start up to the one of a moment, or the last one. */
export function bucketsUpTo(startedAt: number, last: number): Bucket[] {
  const buckets: Bucket[] = []
  for (let bucket = bucketOf(startedAt, startedAt); bucket && bucket.startsAt <= last;) {
    buckets.push(bucket)
    bucket = bucketOf(startedAt, bucket.startsAt + bucket.lengthMs)
  }
  return buckets
}

/** Name of all providers without one. */
export const OTHER_PROVIDERS = ''

/** By the recipient's domain alone, so that all events of a recipient count for the same provider. */
function providerOf(address: string): string {
  return ispName(addressDomain(address)) ?? OTHER_PROVIDERS
}

export async function countInReport(db: Queries, noted: readonly Noted[]): Promise<void> {
  if (noted.length === 0) return
  const starts = await findStarts(db, [...new Set(noted.map(({ campaign }) => campaign))])
  const times = new Map<string, TimeCount>()
  const providers = new Map<string, ProviderCount>()
  for (const { campaign, at, to, counted } of noted) {
    const startedAt = starts.get(campaign)
    const bucket = startedAt === undefined ? undefined : bucketOf(startedAt, at)
    const time = bucket && partOf(counted, TIME_COUNTS)
    if (bucket && time) {
      const key = `${campaign} ${bucket.startsAt}`
      const before = times.get(key)
      times.set(key, { campaign, startsAt: bucket.startsAt, counted: sumOf(before?.counted, time) })
    }
    const own = partOf(counted, PROVIDER_COUNTS)
    if (!own) continue
    const provider = providerOf(to)
    const key = `${campaign} ${provider}`
    providers.set(key, { campaign, provider, counted: sumOf(providers.get(key)?.counted, own) })
  }
  await addToTimes(db, [...times.values()])
  await addToProviders(db, [...providers.values()])
}

type Sums<Name extends string> = Readonly<Partial<Record<Name, number>>>

/** @returns undefined if nothing of it is counted there */
function partOf<Name extends string>(counted: Sums<Name>, names: readonly Name[]): Sums<Name> | undefined {
  const found = names.filter(name => (counted[name] ?? 0) !== 0)
  return found.length === 0
    ? undefined
    : (Object.fromEntries(found.map(name => [name, counted[name]])) as Sums<Name>)
}

function sumOf<Name extends string>(one: Sums<Name> | undefined, other: Sums<Name>): Sums<Name> {
  const sum: Partial<Record<Name, number>> = { ...one }
  for (const name of Object.keys(other) as Name[]) sum[name] = (sum[name] ?? 0) + (other[name] ?? 0)
  return sum
}
