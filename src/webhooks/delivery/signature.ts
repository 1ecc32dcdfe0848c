/**
 * Signatures of webhook deliveries.
 *
 * Each request carries two, so that a receiver can use whichever its library supports:
 * `X-Service-Signature: t=<unix seconds>,v1=<hex>`, HMAC-SHA256 of `<t>.<body>` keyed with the whole secret as text, and
 * `webhook-signature: v1,<base64>`, HMAC-SHA256 of `<id>.<t>.<body>` keyed with the decoded bytes after `whsec_`.
 * After a rotation each also carries one made with the previous secret. Pure.
 * Standards: RFC 2104, FIPS 180-4; Standard Webhooks 1.0 ("Signature scheme").
 */
import { createHmac } from 'node:crypto'
import type { Random } from '../../world/random.js'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** @returns `whsec_` and 32 random bytes in base64 */
export function newSecret(random: Random): string {
  return PREFIX + random.bytes(SECRET_BYTES).toString('base64')
}

export interface Signed {
  readonly deliveryId: string
  /** Time of the attempt, unix seconds. */
  readonly timestamp: number
  readonly body: string
}

/** @param secrets newest first */
export function signatureFields(
  { deliveryId, timestamp, body }: Signed,
  secrets: readonly string[],
): Readonly<Record<string, string>> {
  const hex = secrets.map(secret => `v1=${hmac(secret, `${timestamp}.${body}`).toString('hex')}`)
  const base64 = secrets.map(secret => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
    return `v1,${hmac(key, `${deliveryId}.${timestamp}.${body}`).toString('base64')}`
  })
  return {
    'X-Service-Signature': [`t=${timestamp}`, ...hex].join(','),
    'webhook-id': deliveryId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': base64.join(' '),
  }
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
