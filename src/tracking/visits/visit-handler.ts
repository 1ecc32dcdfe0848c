/**
 * Handles `/c/<token>` and `/o/<token>`: redirects to the link or serves the pixel, and records the visit.
 *
 * Runs before the public pages and without their framework, because a large mailing causes thousands of visits per second. The response
 * waits until the visit is stored; if it cannot be, the reader is redirected anyway.
 * Redirects only to URLs that we signed; invalid tokens are left to the pages.
 * Standards: RFC 9110 §15.4.3 (302), §10.2.2 (Location), §9.3.2 (HEAD); Referrer Policy. Never rejects.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Services } from '../../db/services.js'
import { noticePage } from '../../http/public/document.js'
import { SlidingWindow } from '../../http/sliding-window.js'
import { USUAL_HEADERS, type PublicApp } from '../../http/public/public-app.js'
import type { PublicRoute } from '../../http/public/public-route.js'
import { visitorOf } from '../../http/public/visitor.js'
import { readClick, type Click } from '../../mail/links/click-link.js'
import type { LinkKeys } from '../../mail/links/link-keys.js'
import { LINK_PATHS, MAX_LINK_PATH, readOpen } from '../../mail/links/links.js'
import { NetworkList } from '../../world/net/ip-address.js'
import type { Clock, Timer } from '../../world/time/clock.js'
import type { World } from '../../world/world.js'
import { VisitCounter } from './visit-counter.js'
import { VisitRecorder } from './visit-recorder.js'
import { countVisits } from './visit-store.js'

export interface VisitParts
  extends Pick<World, 'clock' | 'random' | 'log'>, Pick<Services, 'database' | 'onEvents'> {
  readonly keys: LinkKeys
  /** Networks of reverse proxies. */
  readonly trustedProxies: readonly string[]
}

export interface Visits {
  /** Handles visits and passes all other requests to the pages. */
  before(pages: PublicApp): PublicApp
  /** Starts counting what is stored. Of several nodes one counts. */
  start(): void
  /** Counts no more; the rest is for the node that counts next, or for this one after `start`. */
  stop(): Promise<void>
  /** Close the listeners first. */
  close(): Promise<void>
}

export async function openVisits(parts: VisitParts): Promise<Visits> {
  const { database, clock, keys, trustedProxies } = parts
  const recorder = new VisitRecorder(parts, await countVisits(database.reader))
  const counter = new VisitCounter({ ...parts, recorder })
  let isCounting = false
  const learnUncounted = () => {
    timer = clock.after(UNCOUNTED_MS, () => {
      // Another node counts; this one can only look how many are left.
      if (!isCounting)
        countVisits(database.reader).then(
          count => recorder.noteUncounted(count),
          () => {},
        )
      learnUncounted()
    })
  }
  let timer: Timer | undefined
  if (database.announce) learnUncounted()
  recorder.onStored = () => {
    if (isCounting) counter.wake()
  }
  const proxies = new NetworkList(trustedProxies)
  return {
    before: pages => withVisits({ clock, keys, recorder, proxies }, pages),
    start() {
      isCounting = true
      counter.reopen()
      counter.wake()
    },
    stop() {
      isCounting = false
      return counter.stop()
    },
    async close() {
      timer?.cancel()
      await recorder.close()
      await counter.stop()
    },
  }
}

interface VisitHandlerParts {
  readonly clock: Clock
  readonly keys: LinkKeys
  readonly recorder: VisitRecorder
  readonly proxies: NetworkList
}

/** A transparent 1x1 GIF. */
export const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

const UNCOUNTED_MS = 60_000

/** Counted visits per message and minute. */
const MAX_PER_MESSAGE = 120

/** As a string it is sent with the headers in one system call. */
const PIXEL_TEXT = PIXEL.toString('latin1')

const PIXEL_HEADERS = { ...USUAL_HEADERS, 'Content-Type': 'image/gif', 'Content-Length': PIXEL.length }

interface Visited extends Partial<Pick<Click, 'url'>> {
  readonly messageId: string
}

/** @param pages handle everything that is not a visit */
function withVisits(parts: VisitHandlerParts, pages: PublicApp): PublicApp {
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
  { clock, recorder, proxies }: VisitHandlerParts,
  request: IncomingMessage,
  { messageId, url }: Visited,
): Promise<void> {
  const { address, userAgent } = visitorOf(request, proxies)
  const isHead = request.method === 'HEAD'
  const visit = { messageId, at: clock.now(), address, userAgent, isHead }
  await recorder.record(url === undefined ? { kind: 'open', ...visit } : { kind: 'click', ...visit, url })
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

/** Responses to invalid tokens. The pixel is served regardless: an image cannot show an error. */
export const visitPages: readonly PublicRoute[] = [
  {
    method: 'GET',
    path: `${LINK_PATHS.click}:token`,
    isLimited: true,
    handle: ({ texts }) => Promise.resolve({ page: noticePage(texts.badLink), status: 404 }),
  },
  {
    method: 'GET',
    path: `${LINK_PATHS.open}:token`,
    isLimited: false,
    handle: () => Promise.resolve({ octets: PIXEL, mediaType: 'image/gif' }),
  },
]
