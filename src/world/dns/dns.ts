/**
 * DNS lookups for sending mail. Answers distinguish a definite "no" from a temporary failure (RFC 5321 §5.1).
 *
 * Implemented by `dns-client.ts`; tests use `fake-dns.ts`.
 */

/**
 * `missing` is definite: the name does not exist (`nxdomain`) or has no record of this type (`nodata`). `unavailable` is temporary:
 * SERVFAIL, timeout, refused.
 */
export type DnsAnswer<T> =
  | { readonly kind: 'found'; readonly records: readonly T[]; readonly ttlSeconds: number }
  | { readonly kind: 'missing'; readonly why: 'nxdomain' | 'nodata'; readonly ttlSeconds: number }
  | { readonly kind: 'unavailable'; readonly reason: string }

export interface MxRecord {
  /** Host name without trailing dot, lower case; the empty string for a null MX (RFC 7505). */
  readonly exchange: string
  readonly preference: number
}

/** Names are ASCII (A-labels) without trailing dot. CNAMEs are followed. Never rejects. */
export interface Resolver {
  mx(name: string): Promise<DnsAnswer<MxRecord>>
  ipv4(name: string): Promise<DnsAnswer<string>>
  ipv6(name: string): Promise<DnsAnswer<string>>
  /** Each record's strings joined into one (RFC 7208 §3.3). */
  txt(name: string): Promise<DnsAnswer<string>>
  /** The CNAME at this name, not followed. */
  cname(name: string): Promise<DnsAnswer<string>>
  ns(name: string): Promise<DnsAnswer<string>>
  /** @param name from `reverseName` */
  ptr(name: string): Promise<DnsAnswer<string>>
}
