/**
 * `/c/<token>` and `/o/<token>`: leads a reader on, or gives the pixel, and keeps the visit to be counted.
 *
 * Stands before the public pages on their listeners, without a framework: a mail to many brings thousands of these a second. It asks no
 * database. The answer waits until the visit is on disk (`visit-journal.ts`); where that is not possible the reader is led on
 * all the same. Leads only to what we signed; everything else is left to the pages, which say what is wrong.
 * Standards: RFC 9110 §15.4.3 (302), §10.2.2 (Location), §9.3.2 (HEAD); Referrer Policy.
 * Fails: never.
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

/** One picture element, nothing in it. */
export const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

/** Visits of one message in a minute; who comes oftener is led on and not counted. */
const MOST_PER_MESSAGE = 120

/** As a text it leaves together with its header, in one call of the system. */
const PIXEL_TEXT = PIXEL.toString('latin1')

const PIXEL_HEADERS = { ...USUAL_HEADERS, 'Content-Type': 'image/gif', 'Content-Length': PIXEL.length }

interface Visited extends Partial<Pick<Click, 'url'>> {
  readonly messageId: string
}

/** @param pages answer what is no visit */
export function withVisits(parts: VisitHandlerParts, pages: PublicApp): PublicApp {
  const windows = new SlidingWindow(parts.clock)
  return {
    serves: request => pages.serves(request),
    answerFault: (fault, address) => pages.answerFault(fault, address),
    async handle(request, response) {
      const visited = visitedBy(request, parts.keys)
      if (!visited) return pages.handle(request, response)
      if (windows.take(visited.messageId, 1, MOST_PER_MESSAGE).isAllowed) await keep(parts, request, visited)
      answer(response, request.method === 'HEAD', visited.url)
    },
  }
}

function visitedBy({ method, url = '' }: IncomingMessage, keys: LinkKeys): Visited | undefined {
  if ((method !== 'GET' && method !== 'HEAD') || url.length > MAX_LINK_PATH) return undefined
  // Mail programs and those who forward mail add to links.
  const path = url.split(/[?#]/, 1)[0] ?? ''
  if (path.startsWith(LINK_PATHS.click)) return readClick(keys, path.slice(LINK_PATHS.click.length))
  if (!path.startsWith(LINK_PATHS.open)) return undefined
  const messageId = readOpen(keys, path.slice(LINK_PATHS.open.length))
  return messageId === undefined ? undefined : { messageId }
}

async function keep(
  { clock, journal, proxies }: VisitHandlerParts,
  request: IncomingMessage,
  { messageId, url }: Visited,
): Promise<void> {
  const { address, userAgent } = visitorOf(request, proxies)
  const isHead = request.method === 'HEAD'
  const visit = { messageId, at: clock.now(), address, userAgent, isHead }
  await journal.keep(url === undefined ? { kind: 'open', ...visit } : { kind: 'click', ...visit, url })
}

function answer(response: ServerResponse, isHead: boolean, url: string | undefined): void {
  if (url === undefined) {
    response.writeHead(200, PIXEL_HEADERS)
    if (isHead) response.end()
    else response.end(PIXEL_TEXT, 'latin1')
    return
  }
  response.writeHead(302, { ...USUAL_HEADERS, Location: locationOf(url), 'Content-Length': 0 })
  response.end()
}

/** In ASCII, as a header field has to be; what is so already stays as it was written. */
function locationOf(url: string): string {
  if (/^[\x21-\x7e]+$/.test(url)) return url
  return URL.canParse(url) ? new URL(url).href : encodeURI(url)
}
