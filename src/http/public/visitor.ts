/**
 * Who asks for a public page: the address of the connection, or, where a reverse proxy of ours made it, the one that it names.
 *
 * Called by `public-app.ts` for each request. Of X-Forwarded-For the last entry that is no proxy of ours counts: what stands before it
 * the visitor may have written himself. Pure. Standard: none; RFC 7239 describes the same under another name, which proxies seldom
 * send.
 * Fails: never throws; a list that cannot be read leaves the address of the connection.
 */
import type { IncomingMessage } from 'node:http'
import { ipVersion, parseAddressAndPort, type NetworkList } from '../../world/net/ip-address.js'
import type { Visitor } from './public-route.js'

const LONGEST_USER_AGENT = 500
/** Proxies in a row; who names more is making them up. */
const MOST_HOPS = 20

/** @param trusted networks of reverse proxies whose word is taken */
export function visitorOf(request: IncomingMessage, trusted: NetworkList): Visitor {
  const userAgent = (request.headers['user-agent'] ?? '').slice(0, LONGEST_USER_AGENT)
  return { address: addressOf(request, trusted), userAgent }
}

function addressOf({ socket, headers }: IncomingMessage, trusted: NetworkList): string {
  const peer = plain(socket.remoteAddress ?? '')
  const forwarded = headers['x-forwarded-for']
  if (forwarded === undefined || !trusted.contains(peer)) return peer
  // A header that came several times is one list (RFC 9110 §5.3).
  const hops = String(forwarded).split(',').slice(-MOST_HOPS)
  let nearest = peer
  for (const hop of hops.reverse()) {
    const address = plain(parseAddressAndPort(hop.trim(), 0)?.address ?? hop.trim())
    if (ipVersion(address) === 0) return nearest
    nearest = address
    if (!trusted.contains(address)) return nearest
  }
  return nearest
}

/** An IPv4 client of a socket that listens on both. */
function plain(address: string): string {
  return /^::ffff:\d+\.\d+\.\d+\.\d+$/i.test(address) ? address.slice(7) : address
}
