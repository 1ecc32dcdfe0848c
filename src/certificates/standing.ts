/**
 * How the certificate stands that clients are shown: whose it is, for how long, and what is wrong with it.
 *
 * Asked by the job that watches it, and by whoever tells monitors (`/health`, `/metrics`). Pure but for the clock. Fails: never.
 */
import type { Clock } from '../world/time/clock.js'
import type { TlsCertificate } from '../world/tls/tls-certificate.js'

export interface CertificateStanding {
  readonly isSelfSigned: boolean
  /** Ms since epoch UTC. */
  readonly expiresAt: number
  /** Whole days, rounded down; below 0 when it is over. */
  readonly daysLeft: number
  /** One phrase for the operator, e.g. `the certificate expires in 6 days`; undefined where nothing is wrong. */
  readonly fault: string | undefined
}

const DAY_MS = 86_400_000
/** A certificate of 90 days is renewed 30 days before its end; that it was not becomes news here. */
const FAULT_BELOW_DAYS = 14
/** Those of some days are renewed later than that. */
const SHORT_LIVED_MS = 30 * DAY_MS

export function certificateStanding(
  certificate: TlsCertificate,
  clock: Pick<Clock, 'now'>,
): CertificateStanding {
  const { isSelfSigned, expiresAt, validFrom } = certificate
  const leftMs = expiresAt - clock.now()
  const daysLeft = Math.floor(leftMs / DAY_MS)
  const lifetimeMs = expiresAt - validFrom
  const isNear = lifetimeMs > SHORT_LIVED_MS ? daysLeft < FAULT_BELOW_DAYS : leftMs < lifetimeMs / 6
  const fault =
    leftMs <= 0
      ? 'the certificate has expired'
      : isNear
        ? `the certificate expires in ${daysLeft} days`
        : undefined
  return { isSelfSigned, expiresAt, daysLeft, fault }
}
