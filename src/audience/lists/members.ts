/**
 * Adds contacts to lists and removes them: rows, count and events of each piece in one transaction.
 *
 * Called by routes, forms, imports and automations.
 */
import { AppError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import type { Acting, AudienceParts } from '../audience-parts.js'
import { forContacts, type BulkResult } from '../bulk.js'
import type { Contact } from '../contacts/contact.js'
import { toldMember } from '../contacts/contact-events.js'
import { addPairs, LIST_MEMBERS, removePairs } from '../pair-store.js'
import { isListThere, type List } from './list-store.js'
import { findStaticList } from './static-list.js'

type Change = 'added' | 'removed'

/** @throws AppError not_found, conflict for a dynamic list */
export async function changeMembers(
  parts: AudienceParts,
  acting: Acting,
  listId: string,
  ids: readonly string[],
  change: Change,
): Promise<BulkResult> {
  const list = await findStaticList(parts.database.reader, acting.workspaceId, listId)
  return forContacts(parts, acting.workspaceId, ids, (tx, contacts) =>
    changeSome(parts, tx, acting, list, contacts, change),
  )
}

/** In the caller's transaction. @returns how many contacts changed */
export async function changeSome(
  { clock, onEvents }: Pick<AudienceParts, 'clock' | 'onEvents'>,
  tx: Tx,
  acting: Acting,
  list: Pick<List, 'seq' | 'id' | 'name'>,
  contacts: readonly Contact[],
  change: Change,
): Promise<number> {
  if (!(await isListThere(tx.db, list.seq))) throw new AppError('not_found', 'no such list')
  const seqs = contacts.map(({ seq }) => seq)
  const at = clock.now()
  const changed = new Set(
    change === 'added'
      ? await addPairs(tx.db, LIST_MEMBERS, list.seq, seqs, at)
      : await removePairs(tx.db, LIST_MEMBERS, list.seq, seqs),
  )
  await appendEvents(
    tx,
    contacts
      .filter(({ seq }) => changed.has(seq))
      .map(contact => toldMember(`list.member_${change}`, acting, list, contact, at)),
  )
  if (changed.size > 0) tx.onCommit(onEvents)
  return changed.size
}
