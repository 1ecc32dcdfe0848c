/**
 * The hold of a restored copy: until the operator releases it nothing is sent and nothing is begun that sends, since what the backup
 * still has to send may have been sent long ago.
 *
 * Set by `postroad restore`, taken away by `postroad queue release --all`. The server knows it in memory (`RestoreHold`) and looks
 * again when another process has written. Fails: as the database does.
 */
import type { Queries } from '../db/database.js'

interface RestoreHoldRow {
  id: number
  since: number
}

declare module '../db/tables.js' {
  interface Tables {
    restore_holds: RestoreHoldRow
  }
}

const ONLY_ROW = 1

/** @returns since when it is held, ms since epoch UTC; undefined where it is not */
export async function findRestoreHold(db: Queries): Promise<number | undefined> {
  const row = await db
    .selectFrom('restore_holds')
    .select('since')
    .where('id', '=', ONLY_ROW)
    .executeTakeFirst()
  return row?.since
}

export async function setRestoreHold(db: Queries, since: number): Promise<void> {
  await db
    .insertInto('restore_holds')
    .values({ id: ONLY_ROW, since })
    .onConflict(conflict => conflict.column('id').doUpdateSet({ since }))
    .execute()
}

/** @returns whether there was one */
export async function endRestoreHold(db: Queries): Promise<boolean> {
  const result = await db.deleteFrom('restore_holds').where('id', '=', ONLY_ROW).executeTakeFirst()
  return result.numDeletedRows > 0n
}

export class RestoreHold {
  private readonly db: Queries
  private held = false

  constructor(db: Queries) {
    this.db = db
  }

  get isHeld(): boolean {
    return this.held
  }

  /** Asks the database; to be called before anything begins, and when another process may have changed it. */
  async look(): Promise<void> {
    this.held = (await findRestoreHold(this.db)) !== undefined
  }
}
