/**
 * Fills an installation that no server runs on with contacts, all of them in one list.
 *
 * Called by `campaign.ts`. Everything goes through the program's own stores, on a connection without a journal. Contact `n` is always
 * the same, so that runs compare.
 */
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { Kysely } from 'kysely'
import { insertContacts } from '../../src/audience/contacts/contact-write-store.js'
import { findList, insertList } from '../../src/audience/lists/list-store.js'
import { addPairs, LIST_MEMBERS } from '../../src/audience/pair-store.js'
import type { Queries } from '../../src/db/database.js'
import { sqliteDialect } from '../../src/db/sqlite/sqlite-dialect.js'
import type { Tables } from '../../src/db/tables.js'
import { newId } from '../scenarios/history.js'
import type { Installation } from '../server/server-process.js'
import { recipient } from './letters.js'

const PER_TRANSACTION = 5_000
const CACHE_KB = 400_000

/** @returns id of the list */
export async function fillList(
  { dataDir, workspaceId }: Installation,
  contacts: number,
  domains: number,
): Promise<string> {
  const handle = new BetterSqlite(join(dataDir, 'postroad.db'))
  // In its defensive mode, SQLite keeps a journal.
  handle.unsafeMode()
  handle.pragma('journal_mode = OFF')
  handle.pragma('synchronous = OFF')
  handle.pragma(`cache_size = -${CACHE_KB}`)
  const { dialect, run } = sqliteDialect(handle)
  const db: Queries = Object.assign(new Kysely<Tables>({ dialect }), { run })
  const at = Date.now()
  const id = newId(at)
  await insertList(db, {
    id,
    workspaceId,
    name: 'Everybody',
    description: null,
    type: 'static',
    conditions: null,
    isPublic: false,
    doubleOptIn: false,
    createdAt: at,
    updatedAt: at,
  })
  const list = await findList(db, workspaceId, id)
  for (let start = 0; start < contacts; start += PER_TRANSACTION) {
    handle.exec('begin')
    const length = Math.min(PER_TRANSACTION, contacts - start)
    const made = await insertContacts(
      db,
      workspaceId,
      Array.from({ length }, (_, index) => ({
        id: newId(at),
        email: recipient(start + index, domains),
        firstName: `Reader ${start + index}`,
        lastName: 'Smith',
        attributes: { company: 'Shop Ltd', city: 'Berlin', plan: 'basic' },
        subscribed: true,
        createdAt: at,
      })),
    )
    await addPairs(
      db,
      LIST_MEMBERS,
      list?.seq ?? 0,
      made.map(({ seq }) => seq),
      at,
    )
    handle.exec('commit')
  }
  handle.pragma('journal_mode = WAL')
  handle.close()
  return id
}
