/**
 * The hold on a restored copy: nothing is sent or started until the operator releases it, because the mail still queued in the backup may
 * have been sent long ago.
 *
 * Set by `postroad restore`, ended by `postroad queue release --all`. The server caches it (`RestoreHold`) and rereads it after commits of
 * other processes.
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

/** @returns when the hold was set, ms since epoch UTC; undefined without one */
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

/** @returns whether there was a hold */
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

  /** Rereads the hold. Call it before starting any work, and after commits of other processes. */
  async look(): Promise<void> {
    this.held = (await findRestoreHold(this.db)) !== undefined
  }
}
