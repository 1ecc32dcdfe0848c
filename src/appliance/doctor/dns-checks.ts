/**
 * The DNS records that mail depends on: the hostname, PTR records, the MX and SPF of the return path, the keys of every
 * domain, and blocklists.
 *
 * Called by `postroad doctor`; asks through the resolver of the configuration. Never records what it found. Fails: never; a name server
 * that does not answer for one name is a warning.
 */
import type { PublishedName } from '../../cluster/published-name-store.js'
import type { Config } from '../../config/config.js'
import { isAppliance } from '../../core/owner.js'
import { checkDomain } from '../../deliverability/domains/verify-domain.js'
import { dnsRecords } from '../../deliverability/domains/dns-records.js'
import type { Domain } from '../../deliverability/domains/domain-store.js'
import { delegationLine } from '../../deliverability/domains/dkim/dkim-zone.js'
import { addressKind } from '../../world/net/address-kind.js'
import { isSameAddress } from '../../world/net/ip-address.js'
import type { DnsAnswer, Resolver } from '../../world/dns/dns.js'
import { reversedOctets, reverseName } from '../../world/dns/reverse-name.js'
import type { World } from '../../world/world.js'
import { reportAddressOf } from '../published-names.js'
import { fail, ok, warn, type Check, type Task } from './check.js'
import { dial, PROBE_DOMAIN } from './port-checks.js'
import { spfChecks, type SpfSenders, type SpfSubject } from './spf-check.js'

export interface DnsParts {
  readonly config: Config
  readonly resolver: Resolver
  readonly world: Pick<World, 'clock' | 'dialler' | 'machine'>
}

/** Lists that receivers ask. Their answers are addresses in 127/8; those in 127.255.255/24 refuse the question. */
const BLOCKLISTS = ['zen.spamhaus.org', 'bl.spamcop.net', 'b.barracudacentral.org']

/** Addresses for asking the system where mail to the Internet leaves from; nothing is sent there. */
const ELSEWHERE = { ipv4: '198.51.100.1', ipv6: '2000::1' }

const SMTP_PORT = 25
const GREETING_MS = 3_000

/** Lookups that several checks share. */
export interface Senders {
  /** Addresses of the hostname in DNS. */
  readonly ofHostname: Promise<{ readonly found: readonly string[]; readonly isSilent: boolean }>
  /** Addresses that mail leaves from as the world sees them, as far as that is known. */
  readonly addresses: Promise<readonly string[]>
}

export function findSenders(parts: DnsParts): Senders {
  const ofHostname = findHostname(parts)
  return { ofHostname, addresses: ofHostname.then(({ found }) => senderAddresses(parts, found)) }
}

/** Public addresses that mail of a workspace leaves from, as far as they are known. */
export async function sendingAddresses(parts: DnsParts, workspaceId: string): Promise<readonly string[]> {
  const pool = parts.config.mta.sourcePools.find(({ workspace }) => workspace === workspaceId)
  return pool?.addresses ?? senderAddresses(parts, (await findHostname(parts)).found)
}

export function dnsTasks(parts: DnsParts, senders: Senders): Task[] {
  const { ofHostname, addresses } = senders
  const { config, resolver } = parts
  const { hostname, inbound, mta } = config
  const returnPath: SpfSubject = { name: 'dns.spf', domain: mta.returnPathDomain, role: 'return path' }
  const hello: SpfSubject = { name: 'dns.spf_hello', domain: hostname, role: 'hello' }
  return [
    { name: 'dns.servers', ifCutOff: 'fail', run: () => serversCheck(parts) },
    { name: 'dns.hostname', run: async () => hostnameCheck(parts, await ofHostname) },
    {
      name: 'dns.ptr',
      run: async () => Promise.all((await addresses).map(one => pointerCheck(one, hostname, resolver))),
    },
    { name: 'dns.return_path', run: () => returnPathCheck(mta.returnPathDomain, hostname, resolver) },
    ...(inbound.reportDomain.toLowerCase() === hostname.toLowerCase()
      ? []
      : [{ name: 'dns.reports', run: () => reportDomainCheck(config, resolver) }]),
    ...[returnPath, hello].map(subject => ({
      name: subject.name,
      run: async () => spfChecks(subject, await spfSenders(config, senders), resolver),
    })),
    ...(config.dns.listen.length === 0
      ? []
      : [{ name: 'dns.dkim_zone', run: () => delegationCheck(config, resolver) }]),
    {
      name: 'dnsbl',
      run: async () =>
        Promise.all((await addresses).filter(isIpv4).map(address => blocklistCheck(address, resolver))),
    },
  ]
}

/**
 * @param domains sending domains of all workspaces, and that of `mta.shared_address`
 * @param published names of all nodes, former ones too
 */
export function domainTasks(
  { config, resolver }: DnsParts,
  senders: Senders,
  domains: readonly Domain[],
  published: readonly PublishedName[],
): Task[] {
  return domains.flatMap(domain => {
    const subject = domain.domain
    const spf: SpfSubject = { name: 'spf', domain: subject, role: 'from' }
    const records = { name: 'domain', subject, run: () => domainCheck(domain, config, resolver, published) }
    return [
      ...(isAppliance(domain.owner) ? [] : [records]),
      ...(domain.isVouched && !isAppliance(domain.owner)
        ? []
        : [
            {
              name: spf.name,
              subject,
              run: async () => spfChecks(spf, await spfSenders(config, senders), resolver),
            },
          ]),
    ]
  })
}

async function spfSenders({ hostname }: Config, { addresses, ofHostname }: Senders): Promise<SpfSenders> {
  return { hostname, addresses: await addresses, ofHostname: (await ofHostname).found }
}

/** Without DNS no mail is delivered but what has a route to an address. */
async function serversCheck({ config, resolver }: DnsParts): Promise<Check> {
  const name = 'dns.servers'
  const { servers } = config.dns
  const which =
    servers.length === 0 ? "the system's name servers" : servers.map(({ host }) => host).join(', ')
  const answers = await Promise.all([resolver.mx(PROBE_DOMAIN), resolver.ipv4(config.hostname)])
  const silence = answers.find(({ kind }) => kind === 'unavailable')
  return silence?.kind === 'unavailable' && isSilent(answers)
    ? fail(
        name,
        `no answer from ${which}: ${silence.reason}`,
        'set dns.servers to one that answers, or check the network and /etc/resolv.conf',
      )
    : ok(name, `name servers answer: ${which}`)
}

async function findHostname({ config: { hostname }, resolver }: DnsParts) {
  const answers = await Promise.all([resolver.ipv4(hostname), resolver.ipv6(hostname)])
  return { found: answers.flatMap(recordsOf), isSilent: isSilent(answers) }
}

/** Whether the hostname leads to this machine. */
async function hostnameCheck(
  parts: DnsParts,
  { found, isSilent: wasSilent }: Awaited<Senders['ofHostname']>,
): Promise<Check> {
  const name = 'dns.hostname'
  const { hostname } = parts.config
  const own = parts.world.machine.addresses()
  const publicOwn = (own ?? []).filter(one => addressKind(one) === 'public')
  if (found.length === 0)
    return wasSilent
      ? warn(name, `name servers do not answer for ${hostname}`, 'check dns.servers and the network')
      : fail(
          name,
          `${hostname} has no address in DNS`,
          `publish an A record (and AAAA) for ${hostname}${publicOwn.length === 0 ? '' : `: ${publicOwn.join(', ')}`}`,
        )
  const foreign = own === undefined ? [] : found.filter(one => !own.some(mine => isSameAddress(mine, one)))
  if (own === undefined || foreign.length === 0) return ok(name, `${hostname} is ${found.join(', ')}`)
  for (const address of foreign) {
    const ofFamily = publicOwn.filter(one => isIpv4(one) === isIpv4(address))
    const fix =
      ofFamily.length > 0
        ? `publish: ${hostname}. IN ${isIpv4(address) ? 'A' : 'AAAA'} ${ofFamily.join(' or ')}`
        : `publish the address of this machine for ${hostname}, or remove that one`
    const seen = await dial(parts.world, address, SMTP_PORT, GREETING_MS)
    const greeting = 'greeting' in seen ? seen.greeting : ''
    if (greeting === `220 ${hostname} ESMTP Postroad`) {
      if (ofFamily.length === 0) continue
      return warn(
        name,
        `${hostname} is ${address} in DNS, which this machine does not have; a Postroad of that name answers there`,
        `if that is not a load balancer of this machine, ${fix}`,
      )
    }
    if (ofFamily.length > 0 || greeting !== '')
      return fail(
        name,
        `${hostname} is ${address} in DNS, which is another machine${greeting === '' ? '' : `: it says "${greeting}"`}`,
        fix,
      )
    return warn(
      name,
      `${hostname} is ${address} in DNS, which this machine does not have (it has ${own.filter(isRouted).join(', ')}), and port 25 there does not answer from here`,
      `if this machine is behind NAT, forward port 25 of ${address} to it; else ${fix}`,
    )
  }
  return ok(name, `${hostname} is ${found.join(', ')}; ${foreign.join(', ')} leads here through NAT`)
}

const isRouted = (address: string) => !['loopback', 'link-local'].includes(addressKind(address))

/** Configured addresses; else those that the system chooses. Behind NAT the world sees those of the hostname. */
async function senderAddresses(
  { config: { mta }, world: { machine } }: DnsParts,
  ofHostname: readonly string[],
): Promise<string[]> {
  const named = [...mta.sourceAddresses, ...mta.sourcePools.flatMap(({ addresses }) => addresses)]
  const chosen =
    named.length > 0 ? named : await Promise.all(Object.values(ELSEWHERE).map(one => machine.sourceFor(one)))
  const seen = chosen.flatMap(address =>
    address === undefined || addressKind(address) === 'public'
      ? (address ?? [])
      : ofHostname.filter(one => isIpv4(one) === isIpv4(address)),
  )
  const known = seen.length > 0 ? seen : ofHostname
  return [...new Set(known)].filter(address => addressKind(address) === 'public')
}

/** Receivers want the name to lead back to the address (RFC 1912 §2.1). */
async function pointerCheck(address: string, hostname: string, resolver: Resolver): Promise<Check> {
  const name = 'dns.ptr'
  const fix = `have your provider set the PTR record of ${address} to ${hostname}`
  const answer = await resolver.ptr(reverseName(address) ?? '')
  if (answer.kind === 'unavailable')
    return warn(name, `no answer for the PTR record of ${address}`, 'try again later')
  const names = recordsOf(answer)
  if (names.length === 0) return fail(name, `${address} has no PTR record: many hosts refuse its mail`, fix)
  const checked = await Promise.all(
    names.map(async one => ({ one, isBack: await leadsTo(one, address, resolver) })),
  )
  if (checked.every(({ isBack }) => isBack === false))
    return fail(
      name,
      `${address} is ${names.join(', ')} by its PTR record, which does not lead back to it: many hosts refuse its mail`,
      names.includes(hostname) ? `publish ${address} as an address of ${hostname}` : fix,
    )
  if (!names.includes(hostname))
    return warn(name, `${address} is ${names.join(', ')} by its PTR record, not ${hostname}`, fix)
  return ok(name, `${address} is ${hostname} by its PTR record`)
}

/** @returns undefined where DNS does not answer */
async function leadsTo(name: string, address: string, resolver: Resolver): Promise<boolean | undefined> {
  const answer = await (isIpv4(address) ? resolver.ipv4(name) : resolver.ipv6(name))
  if (answer.kind === 'unavailable') return undefined
  return recordsOf(answer).some(one => isSameAddress(one, address))
}

async function returnPathCheck(domain: string, hostname: string, resolver: Resolver): Promise<Check> {
  const name = 'dns.return_path'
  const fix = `publish: ${domain}. IN MX 10 ${hostname}.`
  const answer = await resolver.mx(domain)
  if (answer.kind === 'unavailable') return warn(name, `no answer for the MX of ${domain}`, 'try again later')
  const hosts = recordsOf(answer).map(({ exchange }) => exchange)
  if (hosts.includes(hostname.toLowerCase()))
    return ok(name, `bounces to ${domain} come here, to ${hostname}`)
  return hosts.length === 0
    ? fail(name, `${domain} has no MX: bounces do not come back`, fix)
    : fail(name, `mail to ${domain} goes to ${hosts.join(', ')}: bounces do not come back`, fix)
}

/** Without an MX, mail goes to the addresses of the name (RFC 5321 §5.1). */
async function reportDomainCheck(config: Config, resolver: Resolver): Promise<Check> {
  const name = 'dns.reports'
  const domain = config.inbound.reportDomain
  const answers = await Promise.all([resolver.mx(domain), resolver.ipv4(domain), resolver.ipv6(domain)])
  const [hosts, ...addresses] = answers
  if (recordsOf(hosts).length > 0)
    return ok(
      name,
      `DMARC reports to ${domain} go to ${recordsOf(hosts)
        .map(({ exchange }) => exchange)
        .join(', ')}`,
    )
  const found = addresses.flatMap(recordsOf)
  if (found.length > 0) return ok(name, `DMARC reports to ${domain} go to ${found.join(', ')}`)
  return answers.some(({ kind }) => kind === 'unavailable')
    ? warn(name, `no answer for the MX and the addresses of ${domain}`, 'try again later')
    : fail(
        name,
        `${domain} has neither an MX nor an address: DMARC reports do not arrive`,
        `publish: ${domain}. IN MX 10 ${config.hostname}.`,
      )
}

/** Where the appliance answers for the zone, questions have to come to it. */
async function delegationCheck({ dns, hostname }: Config, resolver: Resolver): Promise<Check> {
  const name = 'dns.dkim_zone'
  const zone = dns.dkimZone
  const fix = `publish in the zone above it: ${delegationLine(zone, hostname)}`
  const answer = await resolver.ns(zone)
  if (answer.kind === 'unavailable')
    return fail(
      name,
      `no answer for the name servers of ${zone}`,
      `open port 53 (UDP and TCP) to dns.listen, and ${fix}`,
    )
  const servers = recordsOf(answer)
  if (servers.includes(hostname.toLowerCase())) return ok(name, `${zone} is delegated to ${hostname}`)
  return servers.length === 0
    ? fail(name, `${zone} is delegated to no name server: DKIM keys are not found`, fix)
    : fail(name, `${zone} is delegated to ${servers.join(', ')}, not to ${hostname}`, fix)
}

async function domainCheck(
  domain: Domain,
  config: Config,
  resolver: Resolver,
  published: readonly PublishedName[],
): Promise<Check> {
  const reportAddress = reportAddressOf(config)
  const { dkimZone } = config.dns
  const name = `domain ${domain.domain}`
  if (domain.isVouched) return ok(name, 'vouched for by the operator; DNS is not asked')
  const { verdict, findings } = await checkDomain(domain, dkimZone, resolver)
  const records = dnsRecords({ ...domain, findings }, dkimZone, reportAddress)
  const wrong = records.filter(({ required, status }) => required && status !== 'verified')
  const look = `postroad domain show ${domain.domain} --workspace ${domain.owner}`
  if (verdict === 'unknown') return warn(name, 'name servers do not answer', 'try again later')
  if (wrong.length > 0)
    return fail(
      name,
      `missing or wrong in DNS: ${wrong.map(one => one.name).join(', ')}`,
      `publish the records that this prints: ${look}`,
    )
  const unkeyed = await unpublished(records, resolver)
  if (unkeyed.length > 0)
    return fail(
      name,
      `its CNAMEs point to keys that are not in DNS: ${unkeyed.join(', ')}`,
      `publish them in ${dkimZone}: postroad dns zone`,
    )
  const dmarc = records.find(({ purpose }) => purpose === 'dmarc')
  if (dmarc && dmarc.status !== 'verified')
    return warn(name, 'it has no DMARC record', `publish: ${dmarc.name}. IN TXT "${dmarc.value}"`)
  const former = formerReportAddress(dmarc?.found ?? [], reportAddress, published)
  return former === undefined
    ? ok(name, 'verification, DKIM and DMARC are in DNS')
    : warn(
        name,
        `its DMARC record asks for reports at ${former}, a former address; they are accepted as long as that name leads here`,
        `in ${dmarc?.name}, replace it by mailto:${reportAddress}`,
      )
}

/** @returns the address of ours that records name, unless they name the current one too */
function formerReportAddress(
  records: readonly string[],
  current: string,
  published: readonly PublishedName[],
): string | undefined {
  const named = new Set(
    records
      .join(' ')
      .toLowerCase()
      .match(/dmarc@[a-z0-9.-]+/g),
  )
  if (named.has(current)) return undefined
  return published.map(({ name }) => `dmarc@${name}`).find(address => named.has(address))
}

/** CNAMEs that are right lead to nothing as long as nobody serves our zone. */
async function unpublished(records: ReturnType<typeof dnsRecords>, resolver: Resolver): Promise<string[]> {
  const targets = records.filter(({ type, required }) => type === 'CNAME' && required).map(({ name }) => name)
  const answers = await Promise.all(targets.map(async name => ({ name, answer: await resolver.txt(name) })))
  return answers.filter(({ answer }) => answer.kind === 'missing').map(({ name }) => name)
}

async function blocklistCheck(address: string, resolver: Resolver): Promise<Check> {
  const name = 'dnsbl'
  const answers = await Promise.all(
    BLOCKLISTS.map(async list => ({
      list,
      answer: await resolver.ipv4(`${reversedOctets(address)}.${list}`),
    })),
  )
  const listed = answers.filter(({ answer }) =>
    recordsOf(answer).some(one => one.startsWith('127.') && !one.startsWith('127.255.255.')),
  )
  if (listed.length > 0)
    return fail(
      name,
      `${address} is listed by ${listed.map(({ list }) => list).join(', ')}`,
      'find the reason on their websites, remove it, and request delisting',
    )
  const asked = answers.filter(({ answer }) => answer.kind === 'missing').length
  return asked === 0
    ? warn(
        name,
        `no list answered for ${address}`,
        'use a name server of your own (dns.servers): blocklists refuse public ones',
      )
    : ok(name, `${address} is on none of the ${asked} lists that answered`)
}

function isIpv4(address: string): boolean {
  return !address.includes(':')
}

function recordsOf<T>(answer: DnsAnswer<T>): readonly T[] {
  return answer.kind === 'found' ? answer.records : []
}

function isSilent(answers: readonly DnsAnswer<unknown>[]): boolean {
  return answers.every(({ kind }) => kind === 'unavailable')
}
