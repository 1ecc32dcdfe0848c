/**
 * A world in which a domain has an MTA-STS policy: its DNS records, its policy host, and an agent that minds them.
 *
 * `example.com` has one exchanger, `mx.example` (192.0.2.25), and announces policy `1`; what its web server answers is
 * scripted on `http`, and `zone` may be changed on the way.
 */
import { StsPolicies } from '../../../src/mta/routing/mta-sts.js'
import { openSmtpAgent, type SmtpAgentParts } from '../../../src/mta/smtp-agent.js'
import type { DeliveryAgent } from '../../../src/queue/delivery-agent.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { fakeDns, type FakeResolver, type FakeZone } from '../../../src/world/dns/fake-dns.js'
import { FakeHttpClient } from '../../../src/world/net/fake-fetch.js'
import { SeededRandom } from '../../../src/world/fake-random.js'
import { PUBLIC_ONLY } from '../../../src/world/net/egress-policy.js'
import type { HttpResponse } from '../../../src/world/net/fetch.js'
import { mappedDialler, noSystemNames, timeouts, type MappedDialler, type Place } from './mta.js'

export interface StsWorld {
  readonly agent: DeliveryAgent
  readonly policies: StsPolicies
  readonly clock: FakeClock
  readonly dialler: MappedDialler
  readonly http: FakeHttpClient
  readonly resolver: FakeResolver
  readonly zone: FakeZone
}

export interface StsSetting extends Partial<Pick<SmtpAgentParts, 'routes' | 'tlsSites'>> {
  /** Added to the zone, or put in place of what it says. */
  readonly zone?: FakeZone
  /** Certificates to trust beside the system's. */
  readonly trusted?: Buffer
  readonly maxDomains?: number
}

export function announced(id: string): { TXT: string[] } {
  return { TXT: [`v=STSv1; id=${id};`] }
}

export function stsWorld(
  t: { teardown(end: () => Promise<void>): unknown },
  places: Record<string, Place> = {},
  { zone: more = {}, trusted, maxDomains = 100, routes = [], tlsSites = [] }: StsSetting = {},
): StsWorld {
  const zone: FakeZone = {
    'example.com': { MX: ['10 mx.example'] },
    'mx.example': { A: ['192.0.2.25'] },
    '_mta-sts.example.com': announced('1'),
    'mta-sts.example.com': { A: ['192.0.2.80'] },
    ...more,
  }
  const clock = new FakeClock()
  const dialler = mappedDialler(clock, places, trusted)
  const resolver = fakeDns(zone)
  const http = new FakeHttpClient()
  const policies = new StsPolicies({ clock, resolver, http, maxDomains })
  const agent = openSmtpAgent({
    clock,
    dialler,
    resolver,
    systemLookup: noSystemNames,
    random: new SeededRandom(),
    hostname: 'mail.sender.example',
    port: 25,
    egress: PUBLIC_ONLY,
    routes,
    ownAddresses: [],
    sourceAddresses: [],
    timeouts,
    pool: { messagesPerConnection: 1, idleMs: 1, idleConnections: 1 },
    tlsSites,
    stsPolicies: policies,
  })
  t.teardown(async () => {
    const closed = agent.close()
    await clock.advance(timeouts.quitMs)
    await closed
  })
  return { agent, policies, clock, dialler, http, resolver, zone }
}

export interface PolicyParts {
  readonly mode?: string
  readonly mx?: readonly string[]
  readonly maxAge?: number | string
}

/** A well-formed policy where nothing else is said. */
export function policyText({
  mode = 'enforce',
  mx = ['mx.example'],
  maxAge = 86_400,
}: PolicyParts = {}): string {
  return ['version: STSv1', `mode: ${mode}`, ...mx.map(host => `mx: ${host}`), `max_age: ${maxAge}`, ''].join(
    '\r\n',
  )
}

/** What the policy host answers. */
export function served(text: string, parts: Partial<HttpResponse> = {}): Partial<HttpResponse> {
  return { headers: { 'content-type': 'text/plain; charset=utf-8' }, body: Buffer.from(text), ...parts }
}
