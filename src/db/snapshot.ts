/** One moment for an answer that several statements compose: without it, another transaction may commit between them. */
import type { Queries } from './database.js'

/**
 * Runs reads that see one state of the database. In a transaction, it is that of the transaction.
 *
 * Costs a `begin` and a `commit`; a single statement needs none of it. A snapshot keeps a connection, and on SQLite others wait for it: await
 * nothing in it but statements on the given `db`, which are few and short.
 */
export function snapshot<T>(db: Queries, read: (db: Queries) => Promise<T>): Promise<T> {
  return db.isTransaction ? read(db) : db.transaction().execute(read)
}
