/**
 * The services that most parts of the server are opened with.
 *
 * A part names those it uses, e.g. `Pick<Services, 'database' | 'clock'>`, beside what only it needs; a test gives it just these. What
 * must not know the database (`http/`, `smtp/`, `mta/`) does not use this list.
 */
import type { NewId } from '../core/ids.js'
import type { SpawnThread } from '../world/threads.js'
import type { World } from '../world/world.js'
import type { Database } from './database.js'

export interface Services extends Pick<World, 'clock' | 'random' | 'log'> {
  readonly database: Database
  readonly newId: NewId
  readonly spawn: SpawnThread
  /** This server's name in DNS: in EHLO, Received and Message-ID. */
  readonly hostname: string
  /** Base of public pages and links, without a trailing slash. */
  readonly publicUrl: string
  /** Wakes event consumers; call it after the commit that appended events. */
  readonly onEvents: () => void
}
