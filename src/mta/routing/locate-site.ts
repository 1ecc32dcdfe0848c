/**
 * Which site a recipient domain belongs to: what shares connections and rate with it.
 *
 * Called by the queue's schedule. Domains with the same set of MX hosts are one site (a mail host and the thousand domains
 * it serves); so are all domains whose MX hosts match one pattern, since the big providers give every customer host names of
 * their own. A static route is a site by itself. Never dials. Fails: never rejects; a domain that DNS says nothing about is
 * its own site.
 */

import type { LocateSite, SiteFacts } from '../../queue/delivery-agent.js'
import type { Resolver } from '../../world/dns/dns.js'
import { matchesPattern } from './domain-pattern.js'
import type { Route } from '../mta-options.js'

/** One `[[mta.sites]]` entry: limits for MX hosts or recipient domains that match. */
export interface SiteRule {
  /** Exactly one of the two is given; both are patterns. */
  readonly mx: string | undefined
  readonly domain: string | undefined
  /** 0 = the general limit. */
  readonly connections: number
  /** 0 = no limit. */
  readonly messagesPerMinute: number
}

export interface LocatorParts {
  readonly resolver: Pick<Resolver, 'mx'>
  readonly routes: readonly Route[]
  readonly sites: readonly SiteRule[]
  /** Deliveries at a time where no rule says otherwise. */
  readonly connectionsPerSite: number
}

/** Providers whose customers' domains are served by the same machines under names that differ. */
const PROVIDERS = [
  '*.google.com',
  '*.googlemail.com',
  '*.mail.protection.outlook.com',
  '*.mx.microsoft',
  '*.olc.protection.outlook.com',
  '*.yahoodns.net',
  '*.mail.icloud.com',
  '*.mimecast.com',
  '*.pphosted.com',
  '*.messagelabs.com',
  '*.barracudanetworks.com',
  '*.zoho.com',
  '*.kundenserver.de',
  '*.ovh.net',
  '*.secureserver.net',
]

export function openSiteLocator(parts: LocatorParts): LocateSite {
  return async destination => {
    const route = parts.routes.find(({ domain }) => matchesPattern(domain, destination))
    if (route) return withLimits(parts, `${route.host}:${route.port}`, destination, [])
    const answer = await parts.resolver.mx(destination)
    const hosts = answer.kind === 'found' ? answer.records.map(record => record.exchange.toLowerCase()) : []
    return withLimits(parts, siteName(parts, destination, hosts), destination, hosts)
  }
}

/** The operator's patterns group first, then the providers', then the set of hosts itself. */
function siteName({ sites }: LocatorParts, destination: string, hosts: readonly string[]): string {
  if (hosts.length === 0) return destination
  const patterns = [...sites.flatMap(({ mx }) => mx ?? []), ...PROVIDERS]
  const shared = patterns.find(pattern => hosts.every(host => matchesPattern(pattern, host)))
  return shared ?? [...hosts].sort().join(',')
}

/** The first rule that matches counts. A domain that has a rule of its own is a site of its own. */
function withLimits(
  { sites, connectionsPerSite }: LocatorParts,
  name: string,
  destination: string,
  hosts: readonly string[],
): SiteFacts {
  const rule = sites.find(({ mx, domain }) =>
    mx === undefined
      ? domain !== undefined && matchesPattern(domain, destination)
      : hosts.some(host => matchesPattern(mx, host)),
  )
  return {
    name: rule?.domain === undefined ? name : `domain ${rule.domain}`,
    connections: rule && rule.connections > 0 ? rule.connections : connectionsPerSite,
    messagesPerMinute: rule?.messagesPerMinute ?? 0,
  }
}
