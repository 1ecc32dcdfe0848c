/** The visitor of a public page. Called by `public-app.ts` for each request. Pure. */
import type { IncomingMessage } from 'node:http'
import type { NetworkList } from '../../world/net/ip-address.js'
import { clientAddress } from '../client-address.js'
import type { Visitor } from './public-route.js'

const MAX_USER_AGENT = 500

/** @param trusted networks of trusted reverse proxies */
export function visitorOf(request: IncomingMessage, trusted: NetworkList): Visitor {
  const userAgent = (request.headers['user-agent'] ?? '').slice(0, MAX_USER_AGENT)
  return { address: clientAddress(request, trusted), userAgent }
}
