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
import { countDenied, judge, listCounting, listUnjudged, type StoredDenial } from './domain-denial-store.js'
import type { SuppressedContacts } from '../suppressions/suppressed-contacts.js'
import { suppressAll } from '../suppressions/suppression-store.js'

export interface JudgeParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  /** A resolver that remembers nothing. */
  readonly freshResolver: () => Resolver
  readonly suppressedContacts: SuppressedContacts
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** After this what happened around a denial is known. */
const SETTLED_MS = 10 * MINUTE_MS
/** Around a denial, before and after. */
const AROUND_MS = 5 * MINUTE_MS
/** So many different domains denied around the same time discredit each other. */
const MANY_DOMAINS = 10
/** Between two denials that confirm each other, at least. */
const APART_MS = DAY_MS
export const DENIALS_KEPT_MS = 30 * DAY_MS
const BATCH = 200
/** Domains asked about at a time. */
const AT_ONCE = 8
/** Of one domain that are looked at, and suppressed in one transaction. */
const MOST_OF_DOMAIN = 1_000
/** MX hosts that are asked about; a longer list is no proof of anything. */
const MOST_HOSTS = 10

export async function judgeDenials(parts: JudgeParts, stopping: AbortSignal): Promise<void> {
  const { database, clock, log, suppressedContacts } = parts
  const before = clock.now() - SETTLED_MS
  const next = () => listUnjudged(database.reader, before, BATCH)
  for (let due = await next(); due.length > 0; due = await next()) {
    const counting = await findCounting(parts, due, stopping)
    // What was not asked about any more is not judged.
    if (!counting) return
    const suppressed = await database.write(async tx => {
      const isCounting = ({ seq }: StoredDenial) => counting.has(seq)
      const seqsOf = (some: readonly StoredDenial[]) => some.map(({ seq }) => seq)
      await judge(tx.db, seqsOf(due.filter(isCounting)), 'counts')
      await judge(tx.db, seqsOf(due.filter(denial => !isCounting(denial))), 'discredited')
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
async function findCounting(
  { database, freshResolver }: JudgeParts,
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
        minute - AROUND_MS,
        minute + MINUTE_MS + AROUND_MS,
        MANY_DOMAINS,
      )) >= MANY_DOMAINS
    crowded.set(minute, isCrowded)
    if (!isCrowded) alone.push(denial)
  }
  const resolver = freshResolver()
  const asked = [...new Set(alone.filter(({ isOurs }) => isOurs).map(({ domain }) => domain))]
  const denied = new Set<string>()
  for (let at = 0; at < asked.length && !stopping.aborted; at += AT_ONCE)
    await Promise.all(
      asked.slice(at, at + AT_ONCE).map(async domain => {
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
  if (hosts.length > MOST_HOSTS) return false
  const answers = await Promise.all(hosts.flatMap(host => [resolver.ipv4(host), resolver.ipv6(host)]))
  return answers.every(({ kind }) => kind === 'missing')
}

/** @returns how many recipients */
async function suppressConfirmed(
  tx: Tx,
  domain: string,
  now: number,
  contacts: SuppressedContacts,
): Promise<number> {
  const denials = await listCounting(tx.db, domain, now - DENIALS_KEPT_MS, MOST_OF_DOMAIN)
  const [first, last] = [denials[0], denials.at(-1)]
  if (!first || !last || last.deniedAt - first.deniedAt < APART_MS) return 0
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
