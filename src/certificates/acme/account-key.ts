/**
 * The key of an ACME account: its thumbprint, and requests signed with it.
 *
 * Called by the ACME client. Standards: RFC 7515 (JWS), RFC 7518 §3.4 (ES256), RFC 7638 (thumbprint), RFC 8555 §6.2. Pure; the key never
 * leaves it but to be written to its file.
 */
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto'

/** As JWS sends it, flattened. */
export interface SignedRequest {
  readonly protected: string
  readonly payload: string
  readonly signature: string
}

export class AccountKey {
  private readonly privateKey: KeyObject
  private readonly jwk: { readonly crv: string; readonly kty: string; readonly x: string; readonly y: string }

  /** @param pem of an ECDSA P-256 key @throws Error for anything else */
  constructor(pem: string) {
    this.privateKey = createPrivateKey(pem)
    const { crv, kty, x, y } = createPublicKey(this.privateKey).export({ format: 'jwk' })
    if (crv !== 'P-256' || kty !== 'EC' || x === undefined || y === undefined)
      throw new Error('the key of the ACME account is no ECDSA P-256 key')
    this.jwk = { crv, kty, x, y }
  }

  /** Members in the order of their names, as RFC 7638 §3 has them. */
  thumbprint(): string {
    return createHash('sha256').update(JSON.stringify(this.jwk)).digest('base64url')
  }

  /** RFC 8555 §8.1. */
  keyAuthorization(token: string): string {
    return `${token}.${this.thumbprint()}`
  }

  /**
   * @param account its URL; undefined as long as it has none, and the key itself is sent
   * @param payload undefined: nothing, as POST-as-GET has it (RFC 8555 §6.3)
   */
  sign(url: string, nonce: string, account: string | undefined, payload: unknown): SignedRequest {
    const identity = account === undefined ? { jwk: this.jwk } : { kid: account }
    const header = encode(JSON.stringify({ alg: 'ES256', ...identity, nonce, url }))
    const body = payload === undefined ? '' : encode(JSON.stringify(payload))
    const signature = sign('sha256', Buffer.from(`${header}.${body}`), {
      key: this.privateKey,
      dsaEncoding: 'ieee-p1363',
    })
    return { protected: header, payload: body, signature: signature.toString('base64url') }
  }
}

/** TXT of DNS-01 (RFC 8555 §8.4). */
export function dnsProof(keyAuthorization: string): string {
  return createHash('sha256').update(keyAuthorization).digest('base64url')
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}
