/**
 * SQL of the contents that mails of a step share: a hundred thousand runs send the same mail, whose text stands in the database once.
 *
 * A content is gone on with for a while, as long as it is still what the step would make, and its text is still there.
 */
import type { Queries } from '../../db/database.js'
import { statement } from '../../db/statement.js'

declare module '../../db/tables.js' {
  interface Tables {
    automation_mails: { step: number; content_id: string; fingerprint: string; stored_at: number }
  }
}

const selectMail = statement((db, { step }: { readonly step: number }) =>
  db
    .selectFrom('automation_mails')
    .innerJoin('message_contents', 'message_contents.id', 'automation_mails.content_id')
    .select(['content_id', 'fingerprint', 'stored_at'])
    .where('step', '=', step)
    .where('message_contents.pruned_at', 'is', null),
)

/** @param since stored no earlier, ms since epoch UTC @returns id of the content that can be sent once more */
export async function findStoredMail(
  db: Queries,
  step: number,
  fingerprint: string,
  since: number,
): Promise<string | undefined> {
  const [row] = (await selectMail(db, { step })).rows
  return row && row.fingerprint === fingerprint && row.stored_at >= since ? row.content_id : undefined
}

export async function keepStoredMail(
  db: Queries,
  step: number,
  contentId: string,
  fingerprint: string,
  at: number,
): Promise<void> {
  const row = { content_id: contentId, fingerprint, stored_at: at }
  await db
    .insertInto('automation_mails')
    .values({ step, ...row })
    .onConflict(conflict => conflict.column('step').doUpdateSet(row))
    .execute()
}
