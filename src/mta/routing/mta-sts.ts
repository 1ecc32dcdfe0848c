/**
 * Finds, fetches and caches the MTA-STS policies of recipient domains.
 *
 * One cache per SMTP agent, in memory and bounded. Never rejects: without a usable policy, mail is delivered as if the domain had none.
 * Standards: RFC 8461 §3.1 (record), §3.2 (policy), §3.3 (fetching), §4.1 (matching hosts), §5.1 (caching).
 *
 *   not cached + record     -> fetch        cached, same id                       -> use it (and refresh daily)
 *   not cached + no record  -> none         cached, other id                      -> fetch; keep the old one if that fails
 *                                           cached, no record or DNS unavailable  -> use it
 */
import { given } from '../../core/given.js'
import { describeError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { HttpClient, HttpResponse } from '../../world/net/fetch.js'
import { resolveHost } from './host-addresses.js'

export type StsLookup =
  /** The domain has no policy, or its mode is `none`. */
  | { readonly kind: 'none' }
  | { readonly kind: 'policy'; readonly policy: StsPolicy }
  /** A policy is announced but could not be fetched. */
  | { readonly kind: 'unavailable'; readonly reason: string }

interface CachedPolicy {
  readonly policy: StsPolicy
  readonly id: string
  /** Monotonic, ms. */
  readonly fetchedAt: number
}

/** Has at least one of the two. */
interface CacheEntry {
  readonly cached?: CachedPolicy
  readonly failure?: { readonly reason: string; readonly failedAt: number }
}

/** The least recently used domain is evicted. A policy is a few hundred bytes. */
const MAX_DOMAINS = 5_000
/** No fetch is retried within this time (RFC 8461 §3.3). */
const RETRY_AFTER_MS = 300_000
/** Refreshing an unchanged policy daily defeats an attacker who blocks the fetch around its expiry (RFC 8461 §10.2). */
const REFRESH_MS = 86_400_000

export class StsPolicies {
  private readonly parts: StsFetchParts
  private readonly maxDomains: number
  /** Least recently used first. */
  private readonly entries = new Map<string, CacheEntry>()
  private readonly inFlight = new Map<string, Promise<void>>()

  constructor(parts: StsFetchParts & { readonly maxDomains?: number }) {
    this.parts = parts
    this.maxDomains = parts.maxDomains ?? MAX_DOMAINS
  }

  /** @param domain recipient domain: A-labels, lower case */
  async find(domain: string): Promise<StsLookup> {
    const answer = await this.parts.resolver.txt(`_mta-sts.${domain}`)
    const id = answer.kind === 'found' ? parseStsId(answer.records) : undefined
    // RFC 8461 §5.1: a cached policy stays in force while the record is missing or DNS fails.
    if (id !== undefined) await this.update(domain, id)
    return lookupOf(this.lookUp(domain), id !== undefined)
  }

  private async update(domain: string, id: string): Promise<void> {
    const { cached, failure } = this.lookUp(domain)
    if (failure !== undefined) return
    if (cached?.id !== id) {
      await this.refresh(domain, id)
      return
    }
    // The cached policy is still valid, so nobody waits for the refresh.
    if (this.parts.clock.monotonic() - cached.fetchedAt >= REFRESH_MS) void this.refresh(domain, id)
  }

  /** Drops what has expired. */
  private lookUp(domain: string): CacheEntry {
    const { cached, failure } = this.entries.get(domain) ?? {}
    const now = this.parts.clock.monotonic()
    const isFresh = cached !== undefined && now - cached.fetchedAt <= cached.policy.maxAgeSeconds * 1_000
    const isRecent = failure !== undefined && now - failure.failedAt < RETRY_AFTER_MS
    const still: CacheEntry = { ...(isFresh ? { cached } : {}), ...(isRecent ? { failure } : {}) }
    this.store(domain, still)
    return still
  }

  private store(domain: string, known: CacheEntry): void {
    this.entries.delete(domain)
    if (known.cached === undefined && known.failure === undefined) return
    this.entries.set(domain, known)
    const oldest = this.entries.size > this.maxDomains ? this.entries.keys().next().value : undefined
    if (oldest !== undefined) this.entries.delete(oldest)
  }

  /** Concurrent deliveries share one fetch. */
  private refresh(domain: string, id: string): Promise<void> {
    const shared = this.inFlight.get(domain)
    if (shared !== undefined) return shared
    const fetching = this.fetch(domain, id).finally(() => this.inFlight.delete(domain))
    this.inFlight.set(domain, fetching)
    return fetching
  }

  private async fetch(domain: string, id: string): Promise<void> {
    const { clock } = this.parts
    const result = await fetchStsPolicy(this.parts, domain)
    const now = clock.monotonic()
    if ('policy' in result) {
      this.store(domain, { cached: { policy: result.policy, id, fetchedAt: now } })
      return
    }
    const { cached } = this.lookUp(domain)
    const failure = { reason: result.problem, failedAt: now }
    this.store(domain, { ...given({ cached }), failure })
  }
}

function lookupOf({ cached, failure }: CacheEntry, isAnnounced: boolean): StsLookup {
  if (cached !== undefined && cached.policy.mode !== 'none') return { kind: 'policy', policy: cached.policy }
  if (cached !== undefined || failure === undefined || !isAnnounced) return { kind: 'none' }
  return { kind: 'unavailable', reason: failure.reason }
}

export interface StsPolicy {
  readonly mode: 'enforce' | 'testing' | 'none'
  /** Host names and `*.domain`, lower case. */
  readonly mx: readonly string[]
  readonly maxAgeSeconds: number
}

type ParsedPolicy = { readonly policy: StsPolicy } | { readonly fault: string }

const EXTENSION_NAME = '[A-Za-z0-9][A-Za-z0-9_.-]{0,31}'
/** RFC 8461 §3.1 `sts-ext-value`: printable, except `;` and `=`. */
const RECORD_FIELD = new RegExp(`^${EXTENSION_NAME}=[\\x21-\\x3a\\x3c\\x3e-\\x7e]+$`)
const RECORD_ID = /^id=([A-Za-z0-9]{1,32})$/

/**
 * @param records TXT records of `_mta-sts.<domain>`
 * @returns the policy id; undefined unless exactly one well-formed record announces a policy
 */
export function parseStsId(records: readonly string[]): string | undefined {
  // RFC 8461 §3.1: other TXT records are ignored; two STSv1 records count as none.
  const [record, ...others] = records.filter(text => /^v=STSv1[ \t]*;/.test(text))
  if (record === undefined || others.length > 0) return undefined
  const fields = record.split(';').map(field => field.trim())
  if (fields.at(-1) === '') fields.pop()
  if (!fields.every(field => RECORD_FIELD.test(field))) return undefined
  // The first of repeated fields counts.
  const id = fields.find(field => field.startsWith('id='))
  return id === undefined ? undefined : RECORD_ID.exec(id)?.[1]
}

/** No real domain has nearly as many MX hosts. */
const MAX_PATTERNS = 200
/** RFC 8461 §3.2: about a year. */
const MAX_AGE_LIMIT_SECONDS = 31_557_600

const FIELD_NAME = new RegExp(`^${EXTENSION_NAME}$`)
/** RFC 8461 §3.2 `sts-policy-vchar` with spaces; the decoder has rejected invalid UTF-8. */
const FIELD_VALUE = /^[^\p{Cc}]+$/u
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const MX_PATTERN = new RegExp(`^(?:\\*\\.)?${LABEL}(?:\\.${LABEL})*$`)

/**
 * Never throws; returns what is wrong with the policy instead.
 *
 * @param text body of `/.well-known/mta-sts.txt`
 */
export function parseStsPolicy(text: string): ParsedPolicy {
  const fields = new Map<string, string>()
  const mx: string[] = []
  const lines = text.split(/\r?\n/)
  // Trailing empty lines are tolerated.
  while (lines.at(-1) === '') lines.pop()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const [name, value] = [line.slice(0, Math.max(0, colon)), line.slice(colon + 1).trim()]
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) return { fault: 'a line is not "name: value"' }
    if (name === 'mx') mx.push(value.toLowerCase())
    // RFC 8461 §3.2: the first of repeated fields counts; unknown fields are ignored.
    else if (!fields.has(name)) fields.set(name, value)
  }
  return checkPolicy(fields, mx)
}

function checkPolicy(fields: ReadonlyMap<string, string>, mx: readonly string[]): ParsedPolicy {
  if (fields.get('version') !== 'STSv1') return { fault: 'its version is not STSv1' }
  const mode = MODES.find(known => known === fields.get('mode'))
  if (mode === undefined) return { fault: 'its mode is not enforce, testing or none' }
  const digits = fields.get('max_age') ?? ''
  const maxAgeSeconds = Number(digits)
  if (!/^\d{1,10}$/.test(digits) || maxAgeSeconds > MAX_AGE_LIMIT_SECONDS)
    return { fault: `its max_age is not a number from 0 to ${MAX_AGE_LIMIT_SECONDS}` }
  if (!mx.every(isMxPattern)) return { fault: 'an mx is neither a host name nor *.domain' }
  if (mx.length > MAX_PATTERNS) return { fault: `it has more than ${MAX_PATTERNS} mx` }
  // A policy that is being withdrawn needs no hosts (RFC 8461 §8.3).
  if (mx.length === 0 && mode !== 'none') return { fault: 'it has no mx' }
  return { policy: { mode, mx, maxAgeSeconds } }
}

const MODES = ['enforce', 'testing', 'none'] as const

function isMxPattern(pattern: string): boolean {
  return pattern.length <= 253 && MX_PATTERN.test(pattern)
}

/**
 * Whether the policy lists this MX host (RFC 8461 §4.1): `*` matches exactly the left-most label.
 *
 * @param host lower case
 */
export function listsHost({ mx }: StsPolicy, host: string): boolean {
  const dot = host.indexOf('.')
  const wildcard = dot > 0 ? `*${host.slice(dot)}` : undefined
  return mx.some(pattern => pattern === host || pattern === wildcard)
}

interface StsFetchParts {
  readonly clock: Clock
  readonly resolver: Resolver
  readonly http: HttpClient
}

type StsFetch = { readonly policy: StsPolicy } | { readonly problem: string }

/** RFC 8461 §3.3 suggests a minute, but mail waits for this and occupies a queue slot. */
const TIMEOUT_MS = 10_000
/** RFC 8461 §3.3. */
const MAX_POLICY_BYTES = 65_536

/**
 * Fetches a policy from the domain's web server (RFC 8461 §3.2). Never rejects.
 *
 * @param domain A-labels, lower case
 */
async function fetchStsPolicy(parts: StsFetchParts, domain: string): Promise<StsFetch> {
  const host = `mta-sts.${domain}`
  const { addresses, problem } = await resolveHost(parts.resolver, host)
  if (addresses.length === 0) return { problem: problem ?? `${host} has no address` }
  return request(parts, host, addresses)
}

/** Tries each address, since one family may not work from here, within one shared time limit. */
async function request(
  { clock, http }: StsFetchParts,
  host: string,
  addresses: readonly string[],
): Promise<StsFetch> {
  const endsAt = clock.monotonic() + TIMEOUT_MS
  let problem = 'not reached'
  for (const [index, address] of addresses.entries()) {
    const leftMs = endsAt - clock.monotonic()
    try {
      return readResponse(
        await http.request({
          method: 'GET',
          url: `https://${host}/.well-known/mta-sts.txt`,
          address,
          timeoutMs: Math.floor(leftMs / (addresses.length - index)),
          maxBytes: MAX_POLICY_BYTES,
        }),
      )
    } catch (error) {
      problem = describeError(error)
    }
  }
  return { problem: `${host}: ${problem}` }
}

function readResponse({ status, headers, body, isTruncated }: HttpResponse): StsFetch {
  // RFC 8461 §3.3: only 200; redirects must not be followed.
  if (status !== 200) return { problem: `the policy host answered ${status}` }
  const mediaType = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
  // RFC 8461 §3.2: someone allowed to upload images must not be able to publish a policy.
  if (mediaType !== 'text/plain') return { problem: 'the policy is not text/plain' }
  if (isTruncated) return { problem: 'the policy is longer than 64 KB' }
  const text = decode(body)
  if (text === undefined) return { problem: 'the policy is not UTF-8' }
  const reading = parseStsPolicy(text)
  return 'policy' in reading ? reading : { problem: `the policy is malformed: ${reading.fault}` }
}

function decode(body: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}
