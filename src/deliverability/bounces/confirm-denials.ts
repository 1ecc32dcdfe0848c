/**
 * Confirms over time that a domain does not exist, and only then suppresses the recipients whose mail bounced for it.
 *
 * The scheduler runs it every few minutes over denials that are some minutes old. A resolver that lies for a minute, or a domain that
 * lapses for an afternoon, must suppress nobody for good. A denial is credible if
 *   - few other domains were denied around the same time: many mean a resolver failure;
 *   - DNS still denies the domain when asked again (if our own resolver denied it).
 * Two credible denials at least a day apart, by any messages, confirm each other: all recipients at the domain that bounced for it are
 * suppressed.
 */
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import type { Resolver } from '../../world/dns/dns.js'
import {
  countDenied,
  setVerdict,
  listCredible,
  listUnjudged,
  type StoredDenial,
} from './domain-denial-store.js'
import type { ContactSuppressions } from '../suppressions/suppressions.js'
import { suppressAll } from '../suppressions/suppression-store.js'

export interface DenialParts extends Pick<Services, 'database' | 'clock' | 'log'> {
  /** A resolver without a cache. */
  readonly freshResolver: () => Resolver
  readonly suppressedContacts: ContactSuppressions
}

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** Denials this old are judged: others around the same time are known by then. */
const SETTLED_MS = 10 * MINUTE_MS
const WINDOW_MS = 5 * MINUTE_MS
/** This many distinct domains denied in the window discredit each other. */
const OUTAGE_DOMAINS = 10
/** Minimum time between two denials that confirm each other. */
const MIN_INTERVAL_MS = DAY_MS
export const DENIALS_KEPT_MS = 30 * DAY_MS
const BATCH = 200
const CONCURRENCY = 8
/** Denials of one domain read, and suppressed, in one transaction. */
const MAX_PER_DOMAIN = 1_000
/** A domain with more MX hosts is not judged. */
const MAX_HOSTS = 10

export async function confirmDenials(parts: DenialParts, stopping: AbortSignal): Promise<void> {
  const { database, clock, log, suppressedContacts } = parts
  const before = clock.now() - SETTLED_MS
  const next = () => listUnjudged(database.reader, before, BATCH)
  for (let due = await next(); due.length > 0; due = await next()) {
    const counting = await findCredible(parts, due, stopping)
    // Stopped: judged in the next run.
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
    if (suppressed > 0) log.info('recipients at nonexistent domains suppressed', { recipients: suppressed })
  }
}

/** @returns `seq` of the credible ones; undefined if stopped */
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

/** Whether DNS says definitely that no host accepts the domain's mail (RFC 5321 §5.1). No answer is not definite. */
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
