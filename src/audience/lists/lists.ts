/**
 * Finds lists by id or name, creates missing ones, and changes their members: rows, count and events in one transaction.
 *
 * Called by routes, forms, imports and automations. Fails: AppError not_found, conflict for a dynamic list, limit_reached.
 */
import { AppError } from '../../core/errors.js'
import { isUuid, type NewId } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import {
  findList,
  type List,
  countLists,
  findStaticLists,
  insertList,
  type NamedList,
  isListThere,
} from './list-store.js'
import { fold } from '../../core/fold.js'
import { MAX_LISTS, type Acting, type AudienceParts } from '../audience-parts.js'
import { refuseMoreThan } from '../checks.js'
import { appendEvents } from '../../events/store.js'
import { forContacts, type BulkResult } from '../bulk.js'
import type { Contact } from '../contacts/contact.js'
import { listMemberEvent } from '../contacts/contact-events.js'
import { addPairs, LIST_MEMBERS, removePairs } from '../pair-store.js'

/** @param path request field with the id, if any @throws AppError not_found */
export async function requireList(
  db: Queries,
  workspaceId: string,
  id: string,
  path?: string,
): Promise<List> {
  const list = isUuid(id) ? await findList(db, workspaceId, id.toLowerCase()) : undefined
  if (!list) throw new AppError('not_found', 'no such list', path === undefined ? {} : { path })
  return list
}

/** @throws AppError not_found; conflict for a dynamic list */
export async function findStaticList(
  db: Queries,
  workspaceId: string,
  id: string,
  path?: string,
): Promise<List> {
  const list = await requireList(db, workspaceId, id, path)
  if (list.type === 'dynamic')
    throw new AppError(
      'conflict',
      'the members of a dynamic list follow from its conditions',
      path === undefined ? {} : { path },
    )
  return list
}

/** @param names case is ignored @returns a lookup by name; of several lists with a name, the oldest */
export async function ensureLists(
  tx: Tx,
  { workspaceId }: Pick<Acting, 'workspaceId'>,
  names: readonly string[],
  { at, newId }: { readonly at: number; readonly newId: NewId },
): Promise<(name: string) => NamedList> {
  const find = async () =>
    new Map(
      (await findStaticLists(tx.db, workspaceId))
        .reverse()
        .map((list): [string, NamedList] => [fold(list.name), list]),
    )
  let found = await find()
  const missing = [...new Map(names.map(name => [fold(name), name]))].filter(([folded]) => !found.has(folded))
  if (missing.length > 0)
    refuseMoreThan(MAX_LISTS, (await countLists(tx.db, workspaceId)) + missing.length - 1, 'lists')
  for (const [, name] of missing)
    await insertList(tx.db, {
      id: newId(),
      workspaceId,
      name,
      description: null,
      type: 'static',
      conditions: null,
      isPublic: false,
      doubleOptIn: false,
      createdAt: at,
      updatedAt: at,
    })
  if (missing.length > 0) found = await find()
  return name => {
    const list = found.get(fold(name))
    if (!list) throw new Error('a list was not created')
    return list
  }
}

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
  return forContacts(parts, acting.workspaceId, ids, async (tx, contacts) => {
    const changed = await changeSome(parts, tx, acting, list, contacts, change)
    return changed.size
  })
}

/** In the caller's transaction. @returns numbers of the contacts that changed */
export async function changeSome(
  { clock, onEvents }: Pick<AudienceParts, 'clock' | 'onEvents'>,
  tx: Tx,
  acting: Acting,
  list: Pick<List, 'seq' | 'id' | 'name'>,
  contacts: readonly Contact[],
  change: Change,
): Promise<ReadonlySet<number>> {
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
      .map(contact => listMemberEvent(`list.member_${change}`, acting, list, contact, at)),
  )
  if (changed.size > 0) tx.onCommit(onEvents)
  return changed
}
