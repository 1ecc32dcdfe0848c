/**
 * What the world's name servers say of this appliance: its name, the names of its addresses, where bounces come back to, who may
 * send for its return paths, the keys of every domain, and whether it is on a list of senders of spam.
 *
 * Called by `postroad doctor`; asks through the resolver of the configuration. Never records what it found. Fails: never; silence of name servers
 * is a warning.
 */
import type { Config } from '../../config/config.js'
import { checkDomain } from '../../deliverability/domains/verify-domain.js'
import { dnsRecords } from '../../deliverability/domains/dns-records.js'
import type { Domain } from '../../deliverability/domains/domain-store.js'
import { delegationLine } from '../../deliverability/dkim/dkim-zone.js'
import { addressKind } from '../../world/net/address-kind.js'
import type { DnsAnswer, Resolver } from '../../world/dns/dns.js'
import { reversedOctets, reverseName } from '../../world/dns/reverse-name.js'
import { fail, ok, warn, type Check } from './check.js'

/** Lists that receivers ask. Their answers are addresses in 127/8; those in 127.255.255/24 refuse the question. */
const BLOCKLISTS = ['zen.spamhaus.org', 'bl.spamcop.net', 'b.barracudacentral.org']

export async function dnsChecks(
  config: Config,
  resolver: Resolver,
  domains: readonly Domain[],
): Promise<Check[]> {
  const { hostname, mta } = config
  const addresses = await addressesOf(hostname, resolver)
  const senders = senderAddresses(config, addresses.found)
  return [
    addresses.check,
    ...(await Promise.all(senders.map(address => pointerCheck(address, hostname, resolver)))),
    await returnPathCheck(mta.returnPathDomain, hostname, resolver),
    await spfCheck(mta.returnPathDomain, resolver),
    ...(config.dns.listen.length === 0 ? [] : [await delegationCheck(config, resolver)]),
    ...(await Promise.all(domains.map(domain => domainCheck(domain, config, resolver)))),
    ...(await Promise.all(senders.filter(isIpv4).map(address => blocklistCheck(address, resolver)))),
  ]
}

async function addressesOf(hostname: string, resolver: Resolver) {
  const [ipv4, ipv6] = [await resolver.ipv4(hostname), await resolver.ipv6(hostname)]
  const found = [...recordsOf(ipv4), ...recordsOf(ipv6)]
  const check =
    found.length > 0
      ? ok('dns.hostname', `${hostname} is ${found.join(', ')}`)
      : silent([ipv4, ipv6])
        ? warn(
            'dns.hostname',
            `name servers do not answer for ${hostname}`,
            'look at dns.servers and the network',
          )
        : fail(
            'dns.hostname',
            `${hostname} has no address in DNS`,
            `publish an A record (and AAAA) for ${hostname}`,
          )
  return { found, check }
}

/** What mail leaves from, as far as that is known. */
function senderAddresses({ mta }: Config, ofHostname: readonly string[]): string[] {
  const named = [...mta.sourceAddresses, ...mta.sourcePools.flatMap(({ addresses }) => addresses)]
  const addresses = named.length > 0 ? named : ofHostname
  return [...new Set(addresses)].filter(address => addressKind(address) === 'public')
}

/** Receivers want the name to lead back to the address (RFC 1912 §2.1). */
async function pointerCheck(address: string, hostname: string, resolver: Resolver): Promise<Check> {
  const name = 'dns.ptr'
  const mend = `have your provider name ${address} ${hostname} (its PTR record)`
  const answer = await resolver.ptr(reverseName(address) ?? '')
  if (answer.kind === 'unavailable')
    return warn(name, `no answer for the name of ${address}`, 'try again later')
  const names = recordsOf(answer)
  if (names.length === 0) return fail(name, `${address} has no name in DNS: many hosts refuse its mail`, mend)
  if (!names.includes(hostname.toLowerCase()))
    return warn(name, `${address} is named ${names.join(', ')}, and not ${hostname}`, mend)
  return ok(name, `${address} is named ${hostname}`)
}

async function returnPathCheck(domain: string, hostname: string, resolver: Resolver): Promise<Check> {
  const name = 'dns.return_path'
  const mend = `publish: ${domain}. IN MX 10 ${hostname}.`
  const answer = await resolver.mx(domain)
  if (answer.kind === 'unavailable') return warn(name, `no answer for the MX of ${domain}`, 'try again later')
  const hosts = recordsOf(answer).map(({ exchange }) => exchange)
  if (hosts.includes(hostname.toLowerCase())) return ok(name, `bounces to ${domain} come to ${hostname}`)
  return hosts.length === 0
    ? fail(name, `${domain} has no MX: bounces do not come back`, mend)
    : fail(name, `mail to ${domain} goes to ${hosts.join(', ')}: bounces do not come back`, mend)
}

async function spfCheck(domain: string, resolver: Resolver): Promise<Check> {
  const name = 'dns.spf'
  const mend = `publish: ${domain}. IN TXT "v=spf1 mx -all"`
  const answer = await resolver.txt(domain)
  if (answer.kind === 'unavailable')
    return warn(name, `no answer for the SPF record of ${domain}`, 'try again later')
  const policies = recordsOf(answer).filter(text => /^v=spf1(\s|$)/i.test(text))
  if (policies.length > 1)
    return fail(name, `${domain} has ${policies.length} SPF records: none counts`, 'keep one')
  const [policy] = policies
  if (policy === undefined) return fail(name, `${domain} has no SPF record`, mend)
  // Whatever else it says: what names nobody lets nobody send (RFC 7208 §4.6.2).
  return /\s\+?(mx|a|ip4:|ip6:|include:|redirect=|exists:)/i.test(policy)
    ? ok(name, `${domain}: ${policy}`)
    : fail(name, `the SPF record of ${domain} lets nobody send: ${policy}`, mend)
}

/** Where the appliance answers for the zone, questions have to come to it. */
async function delegationCheck({ dns, hostname }: Config, resolver: Resolver): Promise<Check> {
  const name = 'dns.dkim_zone'
  const zone = dns.dkimZone
  const mend = `publish in the zone above it: ${delegationLine(zone, hostname)}`
  const answer = await resolver.ns(zone)
  if (answer.kind === 'unavailable')
    return fail(
      name,
      `no answer for the name servers of ${zone}`,
      `let port 53 (UDP and TCP) through to dns.listen, and ${mend}`,
    )
  const servers = recordsOf(answer)
  if (servers.includes(hostname.toLowerCase())) return ok(name, `${zone} is answered for by ${hostname}`)
  return servers.length === 0
    ? fail(name, `${zone} leads to no name server: keys are not found`, mend)
    : fail(name, `${zone} is answered for by ${servers.join(', ')}, and not by ${hostname}`, mend)
}

async function domainCheck(domain: Domain, config: Config, resolver: Resolver): Promise<Check> {
  const { hostname } = config
  const { dkimZone } = config.dns
  const name = `domain ${domain.domain}`
  if (domain.isVouched) return ok(name, 'vouched for by the operator; DNS is not asked')
  const { verdict, findings } = await checkDomain(domain, dkimZone, resolver)
  const records = dnsRecords({ ...domain, findings }, dkimZone, `dmarc@${hostname}`)
  const wrong = records.filter(({ required, status }) => required && status !== 'verified')
  const look = `postroad domain show ${domain.domain} --workspace ${domain.owner}`
  if (verdict === 'unknown') return warn(name, 'name servers do not answer', 'try again later')
  if (wrong.length > 0)
    return fail(
      name,
      `wrong in DNS: ${wrong.map(one => one.name).join(', ')}`,
      `publish what is asked for: ${look}`,
    )
  const unkeyed = await unpublished(records, resolver)
  if (unkeyed.length > 0)
    return fail(
      name,
      `the keys that its CNAMEs lead to are not in DNS: ${unkeyed.join(', ')}`,
      `publish them in ${dkimZone}: postroad dns zone`,
    )
  const dmarc = records.find(({ purpose }) => purpose === 'dmarc')
  return dmarc && dmarc.status !== 'verified'
    ? warn(name, 'it has no DMARC record of its own', `publish: ${dmarc.name}. IN TXT "${dmarc.value}"`)
    : ok(name, 'verification, DKIM and DMARC are in DNS')
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
      'find out why at their pages, mend it, and ask for removal',
    )
  const asked = answers.filter(({ answer }) => answer.kind === 'missing').length
  return asked === 0
    ? warn(
        name,
        `no list answered for ${address}`,
        'ask through a name server of your own: they refuse public ones',
      )
    : ok(name, `${address} is on none of the ${asked} lists that answered`)
}

function isIpv4(address: string): boolean {
  return !address.includes(':')
}

function recordsOf<T>(answer: DnsAnswer<T>): readonly T[] {
  return answer.kind === 'found' ? answer.records : []
}

function silent(answers: readonly DnsAnswer<unknown>[]): boolean {
  return answers.every(({ kind }) => kind === 'unavailable')
}
