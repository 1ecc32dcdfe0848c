/** SQL of message contents shared by the emails of a step, so that 100,000 runs store the same content once. */
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

/** @param since ms since epoch UTC @returns id of a content with this fingerprint, stored since then and not yet pruned */
export async function findStepContent(
  db: Queries,
  step: number,
  fingerprint: string,
  since: number,
): Promise<string | undefined> {
  const [row] = (await selectMail(db, { step })).rows
  return row && row.fingerprint === fingerprint && row.stored_at >= since ? row.content_id : undefined
}

export async function saveStepContent(
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
