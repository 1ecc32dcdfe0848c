/**
 * Maps a recipient domain to its site, the unit of connection and rate limits. Domains with the same set of MX hosts form one site, and so
 * do domains whose MX hosts match one provider pattern, since large providers give each customer its own host names. A static route is a
 * site. Never rejects; a domain that cannot be resolved is its own site.
 */

import type { LocateSite, SiteFacts } from '../../queue/delivery-agent.js'
import type { Resolver } from '../../world/dns/dns.js'
import { matchesPattern, type Route } from '../mta-options.js'

/** One `[[mta.sites]]` entry: limits for matching MX hosts or recipient domains. */
interface SiteRule {
  /** Has either `mx` or `domain`; both are patterns. */
  readonly mx: string | undefined
  readonly domain: string | undefined
  /** 0: the default limit. */
  readonly connections: number
  /** 0: unlimited. */
  readonly messagesPerMinute: number
}

export interface LocatorParts {
  readonly resolver: Pick<Resolver, 'mx'>
  readonly routes: readonly Route[]
  readonly sites: readonly SiteRule[]
  /** Concurrent deliveries per site without a rule. */
  readonly connectionsPerSite: number
}

/** Providers that serve all customers from the same machines under different host names. */
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

/** Operator patterns take precedence over provider patterns, then the sorted host list is the name. */
function siteName({ sites }: LocatorParts, destination: string, hosts: readonly string[]): string {
  if (hosts.length === 0) return destination
  const patterns = [...sites.flatMap(({ mx }) => mx ?? []), ...PROVIDERS]
  const shared = patterns.find(pattern => hosts.every(host => matchesPattern(pattern, host)))
  return shared ?? [...hosts].sort().join(',')
}

/** The first matching rule applies. A rule by domain makes that domain a separate site. */
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
