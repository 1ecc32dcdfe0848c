/**
 * When the CA wants a certificate to be renewed: ACME Renewal Information.
 *
 * Used by `renewal.ts`. Standard: RFC 9773 §4 (a random moment in the suggested window, §4.2; polled again when the CA says, §4.3). Never
 * fails; without an answer, the renewal time follows from the lifetime.
 */
import { X509Certificate } from 'node:crypto'
import Type from 'typebox'
import { readAuthorityKeyIdentifier } from '../../world/tls/der.js'
import type { AcmeConnection } from './acme-connection.js'

export interface SuggestedRenewal {
  /** Ms since epoch UTC. */
  readonly at: number
  /** Do not poll before this moment. */
  readonly askAgainAt: number
}

const RenewalInfo = Type.Object({
  suggestedWindow: Type.Object({ start: Type.String(), end: Type.String() }),
})

const HOUR_MS = 3_600_000
const USUAL_MS = 6 * HOUR_MS
const MAX_POLL_MS = 24 * HOUR_MS

/** Certificate identifier, RFC 9773 §4.1. @param cert PEM, leaf first @returns undefined if it has no authority key identifier */
export function certificateId(cert: string): string | undefined {
  const { raw, serialNumber } = new X509Certificate(cert)
  const authority = readAuthorityKeyIdentifier(raw)
  if (!authority) return undefined
  const digits = serialNumber.length % 2 === 0 ? serialNumber : `0${serialNumber}`
  // DER INTEGER: a leading zero octet if the first bit is set.
  const serial = Buffer.from(/^[89a-f]/i.test(digits) ? `00${digits}` : digits, 'hex')
  return `${authority.toString('base64url')}.${serial.toString('base64url')}`
}

/** @param fraction uniform in [0, 1) */
export async function askRenewalInfo(
  connection: AcmeConnection,
  id: string,
  now: number,
  fraction: number,
): Promise<SuggestedRenewal | undefined> {
  const { renewalInfo } = connection.directory
  if (renewalInfo === undefined) return undefined
  try {
    const { body, retryAfterMs = USUAL_MS } = await connection.get(
      `${renewalInfo.replace(/\/$/, '')}/${id}`,
      RenewalInfo,
    )
    const [start, end] = [Date.parse(body.suggestedWindow.start), Date.parse(body.suggestedWindow.end)]
    if (!(start < end)) return undefined
    const askAgainAt = now + Math.min(Math.max(retryAfterMs, HOUR_MS), MAX_POLL_MS)
    return { at: Math.round(start + (end - start) * fraction), askAgainAt }
  } catch {
    return undefined
  }
}
