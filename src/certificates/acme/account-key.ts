/**
 * The key of an ACME account: its thumbprint, and requests signed with it.
 *
 * Used by the ACME client. Standards: RFC 7515 (JWS), RFC 7518 §3.4 (ES256), RFC 7638 (thumbprint), RFC 8555 §6.2. Pure. The private key is
 * only exported to be stored.
 */
import { createHash, createPrivateKey, createPublicKey, sign, type KeyObject } from 'node:crypto'

/** Flattened JWS. */
export interface SignedRequest {
  readonly protected: string
  readonly payload: string
  readonly signature: string
}

export class AccountKey {
  private readonly privateKey: KeyObject
  private readonly jwk: { readonly crv: string; readonly kty: string; readonly x: string; readonly y: string }

  /** @param pem ECDSA P-256 key @throws Error for any other key */
  constructor(pem: string) {
    this.privateKey = createPrivateKey(pem)
    const { crv, kty, x, y } = createPublicKey(this.privateKey).export({ format: 'jwk' })
    if (crv !== 'P-256' || kty !== 'EC' || x === undefined || y === undefined)
      throw new Error('the ACME account key is not an ECDSA P-256 key')
    this.jwk = { crv, kty, x, y }
  }

  /** Members in lexicographic order, as RFC 7638 §3 requires. */
  thumbprint(): string {
    return createHash('sha256').update(JSON.stringify(this.jwk)).digest('base64url')
  }

  /** Key authorization, RFC 8555 §8.1. */
  keyAuthorization(token: string): string {
    return `${token}.${this.thumbprint()}`
  }

  /**
   * @param account its URL; undefined before there is one: the public key is sent instead
   * @param payload undefined: empty, for POST-as-GET (RFC 8555 §6.3)
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

/** TXT value of DNS-01 (RFC 8555 §8.4). */
export function dnsProof(keyAuthorization: string): string {
  return createHash('sha256').update(keyAuthorization).digest('base64url')
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url')
}
