import type { Log } from '../../world/log.js'
import { resource } from '../../resource/resource.js'
import { renewRetiredKeys } from './dkim/dkim-keys.js'
import { domainAdminRoutes, type DomainAdminParts } from './domain-admin-routes.js'
import { domainRoutes } from './domain-routes.js'
import { recheckDomains } from './recheck-domains.js'

export interface DomainResourceParts extends DomainAdminParts {
  readonly log: Log
}

export const domains = resource({
  chapters: {
    Domains: 'Sending domains, their DNS records, DKIM keys, and DMARC and TLS reports.',
  },
  open: ({ log, ...parts }: DomainResourceParts) => {
    const { domains } = parts
    return {
      routes: [...domainRoutes(domains), ...domainAdminRoutes(parts)],
      jobs: [
        {
          name: 'recheck-domains',
          schedule: '* * * * *',
          run: stopping => recheckDomains({ ...domains, log }, stopping),
        },
        {
          name: 'renew-dkim',
          schedule: '23 * * * *',
          async run() {
            const selectors = await renewRetiredKeys(domains, domains.clock.now())
            if (selectors > 0) log.info('retired DKIM keys replaced', { selectors })
          },
        },
      ],
    }
  },
})
