/**
 * Whether SPF lets this machine send, for every address that mail leaves from: under the return path, which receivers check; under the
 * hostname, which they check for mail without one (bounces); and under each sending domain, which only some filters check.
 *
 * Called by `dns-checks.ts`. Fails: never.
 */
import { evaluateSpf, type SpfResult } from '../../deliverability/domains/spf.js'
import { spfRecords } from '../../deliverability/domains/spf-record.js'
import type { Resolver } from '../../world/dns/dns.js'
import { fail, ok, warn, type Check } from './check.js'

export interface SpfSubject {
  /** Of the check. */
  readonly name: string
  readonly domain: string
  /**
   * `return path` has to pass. `hello` may have no record, and `from` may have one that says nothing of us: receivers check the return path
   * of the same mail.
   */
  readonly role: 'return path' | 'hello' | 'from'
}

interface Evaluated {
  readonly addresses: readonly string[]
  readonly result: SpfResult
}

export interface SpfSenders {
  /** Addresses that mail leaves from. */
  readonly addresses: readonly string[]
  /** Addresses of the hostname in DNS. */
  readonly ofHostname: readonly string[]
  /** Our name in EHLO. */
  readonly hostname: string
}

export async function spfChecks(
  subject: SpfSubject,
  senders: SpfSenders,
  resolver: Resolver,
): Promise<Check[]> {
  const { name, domain } = subject
  const { addresses, hostname: hello } = senders
  if (addresses.length === 0) return withoutAddress(subject, resolver)
  const results = await Promise.all(
    addresses.map(async sender => ({
      addresses: [sender],
      result: await evaluateSpf({ address: sender, domain, hello }, resolver),
    })),
  )
  const refused = results
    .filter(({ result }) => result.verdict !== 'pass')
    .flatMap(({ addresses }) => addresses)
  const record = await recordOf(domain, resolver)
  return alike(results).map(one =>
    judge(subject, one, fixFor(subject, senders, refused, record, one.result), name),
  )
}

/** Without an address only the presence of the record can be checked. */
async function withoutAddress({ name, domain, role }: SpfSubject, resolver: Resolver): Promise<Check[]> {
  if (role !== 'return path') return []
  const record = await recordOf(domain, resolver)
  return [
    record === undefined
      ? fail(name, `${domain} has no SPF record`, `publish: ${domain}. IN TXT "v=spf1 mx -all"`)
      : warn(
          name,
          `${domain} was not evaluated: the address that mail leaves from is unknown`,
          'set mta.source_addresses',
        ),
  ]
}

async function recordOf(domain: string, resolver: Resolver): Promise<string | undefined> {
  const answer = await resolver.txt(domain)
  return answer.kind === 'found' ? spfRecords(answer.records)[0] : undefined
}

/** Addresses with the same result are one line. */
function alike(results: readonly Evaluated[]): Evaluated[] {
  const groups = new Map<string, Evaluated>()
  for (const { addresses, result } of results) {
    const key = JSON.stringify([result.verdict, result.term, result.reason])
    groups.set(key, { addresses: [...(groups.get(key)?.addresses ?? []), ...addresses], result })
  }
  return [...groups.values()]
}

function judge(
  { domain, role }: SpfSubject,
  { addresses, result }: Evaluated,
  fix: string,
  name: string,
): Check {
  const { verdict, term, reason } = result
  const decided = result.domain === domain ? '' : ` of ${result.domain}`
  const because = reason ?? (term === undefined ? '' : `by "${term}"${decided}`)
  const what = `${domain}: ${verdict} for ${addresses.join(', ')}${because === '' ? '' : ` (${because})`}`
  if (verdict === 'pass') return ok(name, what)
  if (verdict === 'temperror')
    return warn(name, what, 'check the name servers of that name, and try again later')
  if (role === 'return path') return fail(name, what, fix)
  if (verdict === 'none' || verdict === 'neutral') return ok(name, `${what}: not needed`)
  if (role === 'hello') return fail(name, `${what}: bounces that this machine sends are refused`, fix)
  return verdict === 'softfail'
    ? ok(name, `${what}: receivers check the return path instead`)
    : warn(name, `${what}: receivers check the return path, but some filters check this too`, fix)
}

/** @returns the record to publish: the one there is, with what is missing put first, where it needs no lookup */
function fixFor(
  { domain, role }: SpfSubject,
  { ofHostname, hostname }: SpfSenders,
  refused: readonly string[],
  record: string | undefined,
  { verdict, term, reason }: SpfResult,
): string {
  if (verdict === 'permerror' && reason?.endsWith('SPF records'))
    return 'keep one of them, and delete the others'
  const isUnreadable = verdict === 'permerror' && term !== undefined && !reason?.startsWith('more than')
  if (isUnreadable && record?.includes(term))
    return `correct or remove "${term}" in: ${domain}. IN TXT "${record}"`
  if (isUnreadable) return `correct or remove "${term}"`
  // Names follow the host to another address; addresses cost no lookup, of which a record with too many has none to spare.
  const isHost =
    verdict !== 'permerror' &&
    (ofHostname.length === 0 || refused.every(address => ofHostname.includes(address)))
  const byName = role === 'return path' ? 'mx' : domain === hostname ? 'a' : `a:${hostname}`
  const byAddress = refused.map(address => (address.includes(':') ? `ip6:${address}` : `ip4:${address}`))
  const rest = record?.slice('v=spf1'.length).trim()
  return `publish: ${domain}. IN TXT "v=spf1 ${isHost ? byName : byAddress.join(' ')} ${rest === undefined || rest === '' ? '-all' : rest}"`
}
