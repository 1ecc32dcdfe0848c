/** `GET /metrics` as a resource: for Prometheus, with a rule of its own of who may read it. Never on `http.public_listen`. */
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
        'Networks and addresses from which /metrics may be read, straight and by the hostname or an address. What a reverse proxy ' +
        'hands on needs the token. [] leaves the token alone.',
    }),
    token: text({
      default: '',
      secret: 'always',
      description:
        'Whoever sends it (`Authorization: Bearer ...`) may read /metrics from anywhere. Empty: there is none. `openssl rand -hex 24` makes one.',
    }),
  },
  { description: 'Figures for Prometheus at /metrics of http.listen (docs/monitoring.md).' },
)

/** Of the text format. */
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
          summary: 'Figures for Prometheus.',
          mediaType: MEDIA_TYPE,
          response: Type.String(),
          async handle(request) {
            const found = verdict(request)
            if (found === 'wrong token') throw new AppError('unauthorized', 'not the token of [metrics]')
            if (found === 'unknown') throw new AppError('not_found', 'no such path')
            return all.render()
          },
        }),
      ],
    }
  },
})
