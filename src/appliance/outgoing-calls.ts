/**
 * Calls to URLs that strangers give: webhooks, and whatever else a workspace has called. Part of the composition root.
 *
 * One pool of connections for each egress policy, names looked up as `dns.servers` says. What opens private addresses is the operator's list
 * `webhooks.allow_networks` alone; where `allow_networks_for` says `permitted`, only for workspaces whose settings allow them as well.
 */
import { isDeepStrictEqual } from 'node:util'
import { openResolver, type Appliance } from './appliance.js'
import type { Config } from '../config/config.js'
import { openHostLookup } from '../world/dns/host-lookup.js'
import { openHttpClient, type HttpClient } from '../world/net/fetch.js'
import { HttpPool } from '../world/net/http-pool.js'
import { egressPolicyAllowing, PUBLIC_ONLY, type EgressPolicy } from '../world/net/egress-policy.js'

interface Calls {
  readonly http: HttpClient
  readonly egress: EgressPolicy
}

export interface OutgoingCallsOfServer {
  /** `[webhooks]` was read again. */
  reload(config: Config): void
  /** @param isPermitted whether the workspace's settings allow private addresses */
  readonly of: (isPermitted: boolean) => Calls
  /** Ends what is under way. */
  close(): void
}

export function openOutgoingCalls({
  config,
  world,
}: Pick<Appliance, 'config' | 'world'>): OutgoingCallsOfServer {
  const { clock } = world
  const lookUp = openHostLookup(openResolver(config, world), world.systemLookup)
  const pools: HttpPool[] = []
  const callsUnder = (egress: EgressPolicy): Calls => {
    const pool = new HttpPool(clock)
    pools.push(pool)
    return { egress, http: openHttpClient(clock, { egress, lookUp, pool }) }
  }
  const open = ({ webhooks: { allowNetworks, allowNetworksFor } }: Pick<Config, 'webhooks'>) => {
    const listed = callsUnder(egressPolicyAllowing(allowNetworks))
    return { listed, usual: allowNetworksFor === 'all' ? listed : callsUnder(PUBLIC_ONLY) }
  }
  let { webhooks } = config
  let calls = open(config)
  return {
    of: isPermitted => (isPermitted ? calls.listed : calls.usual),
    reload(next) {
      // Connections of the former that nobody uses end by themselves.
      if (!isDeepStrictEqual(next.webhooks, webhooks)) calls = open(next)
      webhooks = next.webhooks
    },
    close: () => pools.forEach(pool => pool.close()),
  }
}
