/**
 * Whether to believe that a domain does not exist: who wrote there bounced at once, and is suppressed only once it was
 * confirmed over time.
 *
 * Run every few minutes by the scheduler over denials that are some minutes old, so that what happened around them is known. A
 * minute of a lying resolver, or a domain that lapsed for an afternoon, must suppress nobody for good. A denial counts when
 *   - few other domains were denied around the same time: where many are, it is the resolver;
 *   - DNS, asked anew, denies the domain still (where it was our own resolver that did).
 * Two that count and lie a day apart, by whatever messages, confirm each other: everybody at that domain who bounced for it is
 * suppressed. Nothing else about the domain follows. Fails: as the database does; what was not judged is judged the next time.
 */
import type { Database, Tx } from '../../db/database.js'
import type { Clock } from '../../world/time/clock.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { Log } from '../../world/log.js'
import {
  countDenied,
  setVerdict,
  listCredible,
  listUnjudged,
  type StoredDenial,
} from './domain-denial-store.js'
import type { ContactSuppressions } from '../suppressions/suppressions.js'
import { suppressAll } from '../suppressions/suppression-store.js'

export interface DenialParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  /** A resolver that remembers nothing. */
  readonly freshResolver: () => Resolver
  readonly suppressedContacts: ContactSuppressions
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** After this what happened around a denial is known. */
const SETTLED_MS = 10 * MINUTE_MS
/** Around a denial, before and after. */
const WINDOW_MS = 5 * MINUTE_MS
/** So many different domains denied around the same time discredit each other. */
const OUTAGE_DOMAINS = 10
/** Between two denials that confirm each other, at least. */
const MIN_INTERVAL_MS = DAY_MS
export const DENIALS_KEPT_MS = 30 * DAY_MS
const BATCH = 200
/** Domains asked about at a time. */
const CONCURRENCY = 8
/** Of one domain that are looked at, and suppressed in one transaction. */
const MAX_PER_DOMAIN = 1_000
/** MX hosts that are asked about; a longer list is no proof of anything. */
const MAX_HOSTS = 10

export async function confirmDenials(parts: DenialParts, stopping: AbortSignal): Promise<void> {
  const { database, clock, log, suppressedContacts } = parts
  const before = clock.now() - SETTLED_MS
  const next = () => listUnjudged(database.reader, before, BATCH)
  for (let due = await next(); due.length > 0; due = await next()) {
    const counting = await findCredible(parts, due, stopping)
    // What was not asked about any more is not judged.
    if (!counting) return
    const suppressed = await database.write(async tx => {
      const isCounting = ({ seq }: StoredDenial) => counting.has(seq)
      const seqsOf = (some: readonly StoredDenial[]) => some.map(({ seq }) => seq)
      await setVerdict(tx.db, seqsOf(due.filter(isCounting)), 'counts')
      await setVerdict(tx.db, seqsOf(due.filter(denial => !isCounting(denial))), 'discredited')
      const domains = new Set(due.filter(isCounting).map(({ domain }) => domain))
      let suppressed = 0
      for (const domain of domains)
        suppressed += await suppressConfirmed(tx, domain, clock.now(), suppressedContacts)
      return suppressed
    })
    if (suppressed > 0)
      log.info('recipients at domains that do not exist are suppressed', { recipients: suppressed })
  }
}

/** @returns the numbers of those that count; undefined when it was told to stop */
async function findCredible(
  { database, freshResolver }: DenialParts,
  due: readonly StoredDenial[],
  stopping: AbortSignal,
): Promise<ReadonlySet<number> | undefined> {
  const crowded = new Map<number, boolean>()
  const alone: StoredDenial[] = []
  for (const denial of due) {
    const minute = Math.floor(denial.deniedAt / MINUTE_MS) * MINUTE_MS
    const isCrowded =
      crowded.get(minute) ??
      (await countDenied(
        database.reader,
        minute - WINDOW_MS,
        minute + MINUTE_MS + WINDOW_MS,
        OUTAGE_DOMAINS,
      )) >= OUTAGE_DOMAINS
    crowded.set(minute, isCrowded)
    if (!isCrowded) alone.push(denial)
  }
  const resolver = freshResolver()
  const asked = [...new Set(alone.filter(({ isOurs }) => isOurs).map(({ domain }) => domain))]
  const denied = new Set<string>()
  for (let at = 0; at < asked.length && !stopping.aborted; at += CONCURRENCY)
    await Promise.all(
      asked.slice(at, at + CONCURRENCY).map(async domain => {
        if (await isDenied(resolver, domain)) denied.add(domain)
      }),
    )
  if (stopping.aborted) return undefined
  return new Set(alone.filter(({ isOurs, domain }) => !isOurs || denied.has(domain)).map(({ seq }) => seq))
}

/** Whether DNS is sure that no host takes the domain's mail (RFC 5321 §5.1). No answer is not sure. */
async function isDenied(resolver: Resolver, domain: string): Promise<boolean> {
  const exchanges = await resolver.mx(domain)
  if (exchanges.kind === 'unavailable') return false
  if (exchanges.kind === 'missing' && exchanges.why === 'nxdomain') return true
  const hosts =
    exchanges.kind === 'missing'
      ? [domain]
      : exchanges.records.map(({ exchange }) => exchange).filter(Boolean)
  if (hosts.length > MAX_HOSTS) return false
  const answers = await Promise.all(hosts.flatMap(host => [resolver.ipv4(host), resolver.ipv6(host)]))
  return answers.every(({ kind }) => kind === 'missing')
}

/** @returns how many recipients */
async function suppressConfirmed(
  tx: Tx,
  domain: string,
  now: number,
  contacts: ContactSuppressions,
): Promise<number> {
  const denials = await listCredible(tx.db, domain, now - DENIALS_KEPT_MS, MAX_PER_DOMAIN)
  const [first, last] = [denials[0], denials.at(-1)]
  if (!first || !last || last.deniedAt - first.deniedAt < MIN_INTERVAL_MS) return 0
  const suppressions = denials.map(({ workspaceId, email, messageId }) => ({
    workspaceId,
    email,
    reason: 'hard_bounce' as const,
    scope: 'all' as const,
    sourceMessageId: messageId,
    createdAt: now,
  }))
  await suppressAll(tx.db, suppressions)
  await contacts.suppressed(tx, suppressions, { isSandbox: false, source: 'system' })
  return new Set(denials.map(({ workspaceId, email }) => `${workspaceId} ${email}`)).size
}
