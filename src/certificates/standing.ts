/**
 * Status of the certificate that clients see: its names, expiry and faults.
 *
 * Used by the watch job, and by `/health` and `/metrics`. Pure except for the clock.
 */
import type { Clock } from '../world/time/clock.js'
import type { TlsCertificate } from '../world/tls/tls-certificate.js'

export interface CertificateStanding {
  readonly isSelfSigned: boolean
  /** Ms since epoch UTC. */
  readonly expiresAt: number
  /** Whole days, rounded down; negative after expiry. */
  readonly daysLeft: number
  /** One phrase for the operator, e.g. `the certificate expires in 6 days`; undefined if all is well. */
  readonly fault: string | undefined
}

const DAY_MS = 86_400_000
/** 90-day certificates are renewed 30 days before expiry, so one this close was not renewed. */
const FAULT_BELOW_DAYS = 14
/** Short-lived certificates are renewed later than that. */
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
