/** SQL for facts about a message that its events do not carry: From and subject. */
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'

export interface MailFacts {
  /** Address in From. */
  readonly from: string
  /** As submitted, with merge tags unresolved. */
  readonly subject: string
}

const selectFacts = statement((db, { ids }: { readonly ids: readonly string[] }) =>
  db
    .selectFrom('messages')
    .innerJoin('message_contents', 'message_contents.id', 'messages.content_id')
    .select(['messages.id', 'message_contents.from_address', 'message_contents.subject'])
    .where('messages.id', 'in', ids),
)

/** @returns by message id; deleted messages are missing */
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
