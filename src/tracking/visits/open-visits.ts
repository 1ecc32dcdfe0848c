/**
 * Opens what counts clicks and opens: the journal, who counts, the handler before the public pages, and the pages for links that are none.
 *
 * Called by the composition root. Closing: first no listener asks any more, then the journal ends, then counting.
 * Fails: rejects where the journal's folder cannot be made or read.
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
import { VisitJournal, visitsFolder } from './visit-journal.js'
import { VisitReader } from './visit-reader.js'
import { findCountedPlace } from './visit-store.js'

export interface VisitParts extends Pick<World, 'clock' | 'random' | 'log'> {
  readonly database: Database
  readonly dataDir: string
  readonly keys: LinkKeys
  /** Networks of reverse proxies. */
  readonly trustedProxies: readonly string[]
  /** The event log has grown. */
  readonly onEvents: () => void
}

export interface Visits {
  /** Stands before the pages and leaves to them what is no visit. */
  before(pages: PublicApp): PublicApp
  close(): Promise<void>
}

export async function openVisits(parts: VisitParts): Promise<Visits> {
  const { database, clock, log, keys, trustedProxies } = parts
  const folder = visitsFolder(parts.dataDir)
  const counted = await findCountedPlace(database.reader)
  const journal = await VisitJournal.open({ folder, clock, log }, counted.file)
  const reader = new VisitReader(folder, journal, counted)
  const counter = new VisitCounter({ ...parts, journal, reader }, counted)
  journal.onKept = () => counter.wake()
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

/** What is asked for with a token that we did not make. A picture is nothing that could say so. */
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
