/**
 * Determines the address of a client: that of the connection, or the one forwarded by a trusted reverse proxy.
 *
 * Used for public pages and for the APIs: limits by address, sign-in, sessions, the activity log. Uses the last entry of X-Forwarded-For that
 * is not a trusted proxy, because clients can forge the entries before it. Pure. Standard: none; RFC 7239 defines a similar header that
 * proxies rarely send.
 * Fails: never throws; if the list is malformed, the last valid address counts.
 */
import type { IncomingMessage } from 'node:http'
import { ipVersion, parseAddressAndPort, type NetworkList } from '../world/net/ip-address.js'

/** Proxies in a chain; longer chains are forged. */
const MAX_HOPS = 20

/** @param trusted networks of trusted reverse proxies @returns never IPv4-mapped; empty on a local socket */
export function clientAddress(
  { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
  trusted: NetworkList,
): string {
  const peer = plain(socket.remoteAddress ?? '')
  const forwarded = headers['x-forwarded-for']
  if (forwarded === undefined || peer === '' || !trusted.contains(peer)) return peer
  // Repeated headers form one list (RFC 9110 §5.3).
  const hops = String(forwarded).split(',').slice(-MAX_HOPS)
  let nearest = peer
  for (const hop of hops.reverse()) {
    const address = plain(parseAddressAndPort(hop.trim(), 0)?.address ?? hop.trim())
    if (ipVersion(address) === 0) return nearest
    nearest = address
    if (!trusted.contains(address)) return nearest
  }
  return nearest
}

/** Strips the IPv6 prefix of an IPv4 client on a dual-stack socket. */
function plain(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice(7) : address
}
