/** `GET /metrics` for Prometheus, with its own access rule. Never served on `http.public_listen`. */
import Type from 'typebox'
import { AppError } from '../core/errors.js'
import { list, parsed, table, text } from '../config/schema/fields.js'
import { parseNetwork } from '../config/schema/values.js'
import { openRoute } from '../http/route.js'
import { resource } from '../resource/resource.js'
import { openMetricsAccess } from './metrics-access.js'
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
