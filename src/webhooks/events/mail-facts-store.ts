/** SQL of what events about mail tell beside what stands in the log: sender and subject, which all recipients of a content share. */
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'

export interface MailFacts {
  /** Address in From. */
  readonly from: string
  /** As submitted: merge tags stand in it as they were written. */
  readonly subject: string
}

const selectFacts = statement((db, { ids }: { readonly ids: readonly string[] }) =>
  db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .select(['messages.id', 'message_contents.from_address', 'message_contents.subject'])
    .where('messages.id', 'in', ids),
)

/** @returns by message; those that are deleted are missing */
export async function findMailFacts(
  db: Queries,
  messageIds: readonly string[],
): Promise<ReadonlyMap<string, MailFacts>> {
  const found = new Map<string, MailFacts>()
  for (const ids of inLists([...new Set(messageIds)]))
    for (const row of (await selectFacts(db, { ids })).rows)
      found.set(row.id, { from: row.from_address, subject: row.subject })
  return found
}
