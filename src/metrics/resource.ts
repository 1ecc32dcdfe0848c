/**
 * `GET /metrics` for Prometheus. Never served on `http.public_listen`.
 *
 * Open to trusted networks (by default this machine only), or to the token from anywhere. An address is trusted only for a direct connection:
 * a reverse proxy forwards requests from anywhere (Forwarded fields), and a foreign Host may come from a web page in a browser (DNS
 * rebinding).
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import Type from 'typebox'
import { list, parsed, table, text } from '../config/schema/fields.js'
import { parseNetwork } from '../config/schema/values.js'
import { AppError } from '../core/errors.js'
import { openRoute } from '../http/route.js'
import { resource } from '../resource/resource.js'
import { ipVersion, NetworkList } from '../world/net/ip-address.js'
import type { Metrics } from './metrics.js'

export interface MetricsParts {
  readonly metrics: Metrics
  readonly hostname: string
  readonly publicUrl: string
}

const SECTION = table(
  {
    networks: list(parsed(parseNetwork, 'a network, e.g. 192.168.7.0/24', { description: '' }), {
      default: ['127.0.0.0/8', '::1/128'],
      example: ['127.0.0.0/8', '::1/128', '10.0.0.5/32'],
      description:
        'Networks and addresses that may read /metrics over a direct connection, by hostname or address. Requests forwarded by ' +
        'a reverse proxy need the token. [] allows the token only.',
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
  open: ({ metrics: all, hostname, publicUrl }: MetricsParts, { networks, token }) => {
    const hosts = [hostname, new URL(publicUrl).hostname]
    const verdict = openMetricsAccess({ networks, token, hosts })
    return {
      routes: [
        openRoute({
          method: 'GET',
          path: '/metrics',
          isAtRoot: true,
          isBare: true,
          access: 'public',
          summary: 'Get Prometheus metrics.',
          mediaType: MEDIA_TYPE,
          response: Type.String(),
          async handle(request) {
            const found = verdict(request)
            if (found === 'wrong token')
              throw new AppError('unauthorized', 'token does not match metrics.token')
            if (found === 'unknown') throw new AppError('not_found', 'no such path')
            return all.render()
          },
        }),
      ],
    }
  },
})

export interface MetricsRequest {
  /** IP address of the client, or of the proxy. */
  readonly peer: string
  /** @returns empty if absent */
  readonly header: (name: string) => string
}

export interface MetricsAccess {
  readonly networks: readonly string[]
  /** Empty: no token. */
  readonly token: string
  /** Host names under which this machine may be scraped. */
  readonly hosts: readonly string[]
}

export type Verdict = 'granted' | 'wrong token' | 'unknown'

export function openMetricsAccess(rule: MetricsAccess): (request: MetricsRequest) => Verdict {
  const networks = new NetworkList(rule.networks)
  const hosts = new Set(['localhost', ...rule.hosts.map(host => host.toLowerCase())])
  return ({ peer, header }) => {
    const authorization = header('Authorization')
    if (rule.token !== '' && authorization !== '')
      return isSameSecret(authorization, `Bearer ${rule.token}`) ? 'granted' : 'wrong token'
    const isForwarded = FORWARDING.some(name => header(name) !== '')
    const isStraight = !isForwarded && header('Origin') === '' && isOwnHost(header('Host'), hosts)
    return isStraight && networks.contains(peer) ? 'granted' : 'unknown'
  }
}

const FORWARDING = ['Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'Via']

function isOwnHost(host: string, hosts: ReadonlySet<string>): boolean {
  const name = host.toLowerCase().replace(/:\d+$/, '')
  return hosts.has(name) || ipVersion(name.replace(/^\[|\]$/g, '')) !== 0
}

/** Constant time. */
function isSameSecret(given: string, secret: string): boolean {
  const [one, other] = [given, secret].map(text => createHash('sha256').update(text).digest())
  return one !== undefined && other !== undefined && timingSafeEqual(one, other)
}
