/**
 * Opens click and open tracking: the journal, the counter, the request handler, and the pages for invalid tokens.
 *
 * Close the listeners first, then this. Rejects if the journal folder cannot be created or read.
 */
import type { Database } from '../../db/database.js'
import { noticePage } from '../../http/public/document.js'
import type { PublicApp } from '../../http/public/public-app.js'
import type { PublicRoute } from '../../http/public/public-route.js'
import type { LinkKeys } from '../../mail/links/link-keys.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import { NetworkList } from '../../world/net/ip-address.js'
import type { World } from '../../world/world.js'
import { VisitCounter } from './visit-counter.js'
import { PIXEL, withVisits } from './visit-handler.js'
import { VisitJournal, visitsFolder, VisitReader } from './visit-journal.js'
import { findCountedPosition } from './visit-store.js'

export interface VisitParts extends Pick<World, 'clock' | 'random' | 'log'> {
  readonly database: Database
  readonly dataDir: string
  readonly keys: LinkKeys
  /** Networks of reverse proxies. */
  readonly trustedProxies: readonly string[]
  /** Call after appending events. */
  readonly onEvents: () => void
}

export interface Visits {
  /** Handles visits and passes all other requests to the pages. */
  before(pages: PublicApp): PublicApp
  close(): Promise<void>
}

export async function openVisits(parts: VisitParts): Promise<Visits> {
  const { database, clock, log, keys, trustedProxies } = parts
  const folder = visitsFolder(parts.dataDir)
  const counted = await findCountedPosition(database.reader)
  const journal = await VisitJournal.open({ folder, clock, log }, counted.file)
  const reader = new VisitReader(folder, journal, counted)
  const counter = new VisitCounter({ ...parts, journal, reader }, counted)
  journal.onAppend = () => counter.wake()
  counter.wake()
  const proxies = new NetworkList(trustedProxies)
  return {
    before: pages => withVisits({ clock, keys, journal, proxies }, pages),
    async close() {
      await journal.close()
      await counter.stop()
    },
  }
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
