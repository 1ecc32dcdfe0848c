/**
 * Handles `/c/<token>` and `/o/<token>`: redirects to the link or serves the pixel, and records the visit.
 *
 * Runs before the public pages and without their framework, because a large mailing causes thousands of visits per second. Never uses
 * the database. The response waits until the visit is in the journal; if it cannot be recorded, the reader is redirected anyway.
 * Redirects only to URLs that we signed; invalid tokens are left to the pages.
 * Standards: RFC 9110 §15.4.3 (302), §10.2.2 (Location), §9.3.2 (HEAD); Referrer Policy. Never rejects.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { SlidingWindow } from '../../http/sliding-window.js'
import { USUAL_HEADERS, type PublicApp } from '../../http/public/public-app.js'
import { visitorOf } from '../../http/public/visitor.js'
import { readClick, type Click } from '../../mail/links/click-link.js'
import type { LinkKeys } from '../../mail/links/link-keys.js'
import { LINK_PATHS, MAX_LINK_PATH, readOpen } from '../../mail/links/links.js'
import type { NetworkList } from '../../world/net/ip-address.js'
import type { Clock } from '../../world/time/clock.js'
import type { VisitJournal } from './visit-journal.js'

export interface VisitHandlerParts {
  readonly clock: Clock
  readonly keys: LinkKeys
  readonly journal: VisitJournal
  readonly proxies: NetworkList
}

/** A transparent 1x1 GIF. */
export const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

/** Counted visits per message and minute. */
const MAX_PER_MESSAGE = 120

/** As a string it is sent with the headers in one system call. */
const PIXEL_TEXT = PIXEL.toString('latin1')

const PIXEL_HEADERS = { ...USUAL_HEADERS, 'Content-Type': 'image/gif', 'Content-Length': PIXEL.length }

interface Visited extends Partial<Pick<Click, 'url'>> {
  readonly messageId: string
}

/** @param pages handle everything that is not a visit */
export function withVisits(parts: VisitHandlerParts, pages: PublicApp): PublicApp {
  const windows = new SlidingWindow(parts.clock)
  return {
    serves: request => pages.serves(request),
    answerFault: (fault, address) => pages.answerFault(fault, address),
    async handle(request, response) {
      const visited = visitedBy(request, parts.keys)
      if (!visited) return pages.handle(request, response)
      if (windows.take(visited.messageId, 1, MAX_PER_MESSAGE).isAllowed) await record(parts, request, visited)
      respond(response, request.method === 'HEAD', visited.url)
    },
  }
}

function visitedBy({ method, url = '' }: IncomingMessage, keys: LinkKeys): Visited | undefined {
  if ((method !== 'GET' && method !== 'HEAD') || url.length > MAX_LINK_PATH) return undefined
  // Mail clients and forwarders append to links.
  const path = url.split(/[?#]/, 1)[0] ?? ''
  if (path.startsWith(LINK_PATHS.click)) return readClick(keys, path.slice(LINK_PATHS.click.length))
  if (!path.startsWith(LINK_PATHS.open)) return undefined
  const messageId = readOpen(keys, path.slice(LINK_PATHS.open.length))
  return messageId === undefined ? undefined : { messageId }
}

async function record(
  { clock, journal, proxies }: VisitHandlerParts,
  request: IncomingMessage,
  { messageId, url }: Visited,
): Promise<void> {
  const { address, userAgent } = visitorOf(request, proxies)
  const isHead = request.method === 'HEAD'
  const visit = { messageId, at: clock.now(), address, userAgent, isHead }
  await journal.append(url === undefined ? { kind: 'open', ...visit } : { kind: 'click', ...visit, url })
}

function respond(response: ServerResponse, isHead: boolean, url: string | undefined): void {
  if (url === undefined) {
    response.writeHead(200, PIXEL_HEADERS)
    if (isHead) response.end()
    else response.end(PIXEL_TEXT, 'latin1')
    return
  }
  response.writeHead(302, { ...USUAL_HEADERS, Location: locationOf(url), 'Content-Length': 0 })
  response.end()
}

/** Percent-encodes non-ASCII characters, which a header field cannot contain. */
function locationOf(url: string): string {
  if (/^[\x21-\x7e]+$/.test(url)) return url
  return URL.canParse(url) ? new URL(url).href : encodeURI(url)
}
