/**
 * Why a domain cannot be written to, at all or now, in DSN terms.
 *
 * Used by `route.ts`, `choose-endpoints.ts` and `conclude.ts`. Status codes: RFC 3463 §3.2, §3.5; 5.1.10: RFC 7505 §4.1.
 */
import type { Classification } from '../../mail/outcome.js'

export interface RoutingVerdict {
  readonly kind: 'never'
  /** RFC 3463 code to report. */
  readonly status: string
  readonly classification: Classification
  readonly summary: string
}

type Reason = Omit<RoutingVerdict, 'summary'>

/** NXDOMAIN, or a name that has neither MX nor address. */
export const NO_DOMAIN: Reason = {
  kind: 'never',
  status: '5.1.2',
  classification: {
    cause: 'recipient',
    scope: 'domain',
    permanence: 'permanent',
    subtype: 'bad_destination',
  },
}

export const NULL_MX: Reason = {
  kind: 'never',
  status: '5.1.10',
  classification: {
    cause: 'recipient',
    scope: 'domain',
    permanence: 'permanent',
    subtype: 'domain_accepts_no_mail',
  },
}

/** Exchangers are named, and DNS is sure that none of the names has an address. */
export const NO_ADDRESS: Reason = {
  kind: 'never',
  status: '5.4.4',
  classification: {
    cause: 'recipient',
    scope: 'domain',
    permanence: 'permanent',
    subtype: 'bad_destination',
  },
}

/** Mail would loop. The mistake is in DNS or in our configuration, never the recipient's. */
export const OURSELVES: Reason = {
  kind: 'never',
  status: '5.4.6',
  classification: { cause: 'config', scope: 'domain', permanence: 'permanent', subtype: 'routing_loop' },
}

/** What the domain's own MTA-STS policy forbids (RFC 8461 §5): never for good, never the recipient's fault. */
export const STS_FAILURE: Classification = {
  cause: 'policy',
  scope: 'domain',
  permanence: 'transient',
  subtype: 'mta_sts_failure',
}

/** Hosts that DNS names at addresses of networks close by, where only the operator may send mail. */
export const OUT_OF_REACH: Classification = {
  cause: 'config',
  scope: 'domain',
  permanence: 'transient',
  subtype: 'address_not_public',
}
