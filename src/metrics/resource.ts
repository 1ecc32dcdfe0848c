/**
 * `GET /metrics` for Prometheus. Never served on `http.public_listen`.
 *
 * Open to operators, to listed networks over a direct connection, and to the token from anywhere.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import Type from 'typebox'
import { sandboxIdOf } from '../accounts/workspace-store.js'
import type { Config } from '../config/config.js'
import { list, parsed, table, text } from '../config/schema/fields.js'
import { parseNetwork } from '../config/schema/values.js'
import { openNetworkAccess, type ClientRequest, type NetworkRule } from '../http/network-access.js'
import { openRoute } from '../http/route.js'
import { resource } from '../resource/resource.js'
import { historyRoute } from './history-route.js'
import { balanceRoute, LIVE_CHAPTER, liveRoute, openLiveFigures, type LiveParts } from './live.js'
import { liveQueueRoute, type LiveQueueParts } from './live-queue.js'
import type { LiveChanges } from './live-changes.js'
import { LiveStreams, type StreamParts } from './live-streams.js'
import { streamRoute } from './stream-route.js'
import type { Metrics } from './metrics.js'

export interface MetricsParts
  extends LiveParts, Omit<LiveQueueParts, 'live' | 'database'>, Pick<StreamParts, 'recheckOperator'> {
  readonly liveChanges: LiveChanges
  readonly metrics: Metrics
  readonly hostname: string
  readonly publicUrl: string
}

const SECTION = table(
  {
    networks: list(parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', { description: '' }), {
      default: [],
      example: ['127.0.0.0/8', '::1/128', '10.0.0.5/32'],
      description:
        'Networks and addresses that may read /metrics over a direct connection, by hostname or address. Requests forwarded by ' +
        'a reverse proxy need the token or an operator token. Do not list loopback if a reverse proxy on this machine drops ' +
        'the forwarding header fields.',
    }),
    token: text({
      default: '',
      secret: 'always',
      description:
        'Bearer token (`Authorization: Bearer ...`) that allows reading /metrics from any address. Empty disables it. Create one with `openssl rand -hex 24`.',
    }),
  },
  { description: 'Prometheus metrics at /metrics on http.listen (docs/monitoring.md).' },
)

/** Prometheus text format. */
const MEDIA_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export const metrics = resource({
  section: { name: 'metrics', schema: SECTION },
  chapters: { [LIVE_CHAPTER]: 'What happens right now.' },
  open: ({ metrics: all, hostname, publicUrl, ...parts }: MetricsParts, { networks, token }) => {
    const hosts = [hostname, new URL(publicUrl).hostname]
    const isListed = mayRead({ networks, token, hosts })
    const readLive = openLiveFigures(parts)
    const streams = new LiveStreams({
      ...parts,
      changes: parts.liveChanges,
      sandboxIdOf,
      readFigures: async () => JSON.stringify(await readLive()),
    })
    return {
      stop: () => streams.close(),
      routes: [
        liveRoute(readLive),
        streamRoute(streams),
        historyRoute(parts),
        balanceRoute(parts),
        liveQueueRoute(parts),
        openRoute({
          method: 'GET',
          path: '/metrics',
          isAtRoot: true,
          isBare: true,
          access: { permission: 'system:read', scope: 'appliance', isListed },
          summary: 'Get Prometheus metrics.',
          mediaType: MEDIA_TYPE,
          response: Type.String(),
          handle: () => all.render(),
        }),
      ],
    }
  },
})

/** Networks of this machine. */
const LOOPBACK = ['127.0.0.0/8', '::1/128']

/**
 * Access to the details of the server's health: everything that may read its metrics, and direct connections from this machine. A Host with
 * one of its public names is not direct here: a reverse proxy on this machine forwards it for strangers.
 */
export function openMonitorAccess({
  sections,
  hostname,
  publicUrl,
}: Pick<Config, 'sections' | 'hostname' | 'publicUrl'>): (request: ClientRequest) => boolean {
  // Decoded by this schema.
  const { networks, token } = sections['metrics'] as { networks: readonly string[]; token: string }
  const isLocal = openNetworkAccess({ networks: LOOPBACK, hosts: [] })
  const isListed = mayRead({ networks, token, hosts: [hostname, new URL(publicUrl).hostname] })
  return request => isLocal(request) || isListed(request)
}

/** A request with the token, or without any token from a listed network. */
function mayRead({ networks, token, hosts }: NetworkRule & { readonly token: string }) {
  const isListed = openNetworkAccess({ networks, hosts })
  return (request: ClientRequest): boolean => {
    const authorization = request.header('Authorization')
    if (token === '' || authorization === '') return isListed(request)
    return isSameSecret(authorization, `Bearer ${token}`)
  }
}

/** Constant time. */
function isSameSecret(given: string, secret: string): boolean {
  const [one, other] = [given, secret].map(text => createHash('sha256').update(text).digest())
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}
