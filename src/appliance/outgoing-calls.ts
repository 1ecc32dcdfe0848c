/**
 * Calls to URLs supplied by workspaces, e.g. webhooks. Part of the composition root.
 *
 * One connection pool per egress policy; names are resolved with `dns.servers`. Private addresses are reachable only if they are in the
 * operator's `webhooks.allow_networks`, and with `allow_networks_for = "permitted"` only from workspaces whose settings allow it.
 */
import { isDeepStrictEqual } from 'node:util'
import { openResolver, type Appliance } from './appliance.js'
import type { Config } from '../config/config.js'
import { openHostLookup } from '../world/dns/host-lookup.js'
import { openHttpClient, type HttpClient, type OpenHttpClient } from '../world/net/fetch.js'
import { egressPolicyAllowing, PUBLIC_ONLY, type EgressPolicy } from '../world/net/egress-policy.js'

interface Calls {
  readonly http: HttpClient
  readonly egress: EgressPolicy
}

export interface OutgoingCallsOfServer {
  /** Applies a reloaded `[webhooks]`. */
  reload(config: Config): void
  /** @param isPermitted whether the workspace's settings allow private addresses */
  readonly of: (isPermitted: boolean) => Calls
  /** Aborts calls in progress. */
  close(): void
}

export function openOutgoingCalls({
  config,
  world,
}: Pick<Appliance, 'config' | 'world'>): OutgoingCallsOfServer {
  const { clock, log } = world
  const lookUp = openHostLookup(openResolver(config, world), world.systemLookup)
  const clients: OpenHttpClient[] = []
  const callsUnder = (egress: EgressPolicy): Calls => {
    const http = openHttpClient(clock, {
      egress,
      lookUp,
      keepsConnections: true,
      onRefused: (host, reason) => {
        log.info('outgoing call refused', { host, reason })
      },
    })
    clients.push(http)
    return { egress, http }
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
      // Idle connections of the old client expire.
      if (!isDeepStrictEqual(next.webhooks, webhooks)) calls = open(next)
      webhooks = next.webhooks
    },
    close: () => clients.forEach(client => client.close()),
  }
}
