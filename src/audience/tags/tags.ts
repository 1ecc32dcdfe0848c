/**
 * Finds tags by id or name, creates missing ones, and adds them to contacts and removes them: rows, count and events in one transaction.
 *
 * Called by routes, imports, automations and commands. Fails: AppError not_found, limit_reached.
 */
import { AppError } from '../../core/errors.js'
import { isUuid, type NewId } from '../../core/ids.js'
import type { Queries, Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { type Acting, type AudienceParts, MAX_TAGS } from '../audience-parts.js'
import { forContacts, type BulkResult } from '../bulk.js'
import type { Contact } from '../contacts/contact.js'
import { tagEvent } from '../contacts/contact-events.js'
import { addPairs, CONTACT_TAGS, removePairs } from '../pair-store.js'
import { findTag, type Tag, countTags, findTagsByName, insertTag } from './tag-store.js'
import { fold } from '../../core/fold.js'
import { refuseMoreThan } from '../checks.js'

type Change = 'added' | 'removed'

/** @throws AppError not_found */
export async function requireTag(db: Queries, workspaceId: string, id: string): Promise<Tag> {
  const tag = isUuid(id) ? await findTag(db, workspaceId, { id: id.toLowerCase() }) : undefined
  if (!tag) throw new AppError('not_found', 'no such tag')
  return tag
}

export async function requireTagNamed(db: Queries, workspaceId: string, name: string): Promise<Tag> {
  const byId = isUuid(name) ? await findTag(db, workspaceId, { id: name.toLowerCase() }) : undefined
  const tag = byId ?? (await findTag(db, workspaceId, { name: name.trim() }))
  if (!tag) throw new AppError('not_found', `no tag is named ${JSON.stringify(name)}`, { path: 'tag' })
  return tag
}

/** @throws AppError not_found */
export async function changeTagged(
  parts: AudienceParts,
  acting: Acting,
  tagId: string,
  ids: readonly string[],
  change: Change,
): Promise<BulkResult> {
  const { workspaceId } = acting
  await requireTag(parts.database.reader, workspaceId, tagId)
  return forContacts(parts, workspaceId, ids, async (tx, contacts) => {
    const tag = await requireTag(tx.db, workspaceId, tagId)
    const changed = await tagSome(parts, tx, acting, tag, contacts, change)
    return changed.size
  })
}

/** In the caller's transaction, which has read the tag. @returns how many contacts changed */
export async function tagSome(
  { clock, onEvents }: Pick<AudienceParts, 'clock' | 'onEvents'>,
  tx: Tx,
  acting: Acting,
  tag: Pick<Tag, 'seq' | 'id' | 'name'>,
  contacts: readonly Contact[],
  change: Change,
): Promise<ReadonlySet<number>> {
  const seqs = contacts.map(({ seq }) => seq)
  const at = clock.now()
  const changed = new Set(
    change === 'added'
      ? await addPairs(tx.db, CONTACT_TAGS, tag.seq, seqs, at)
      : await removePairs(tx.db, CONTACT_TAGS, tag.seq, seqs),
  )
  await appendEvents(
    tx,
    contacts
      .filter(({ seq }) => changed.has(seq))
      .map(contact => tagEvent(`tag.${change}`, acting, tag, contact, at)),
  )
  if (changed.size > 0) tx.onCommit(onEvents)
  return changed
}

/** @param names case is ignored @returns a lookup by name */
export async function ensureTags(
  tx: Tx,
  { workspaceId }: Pick<Acting, 'workspaceId'>,
  names: readonly string[],
  { at, newId }: { readonly at: number; readonly newId: NewId },
): Promise<(name: string) => Tag> {
  const wanted = new Map(names.map(name => [fold(name), name]))
  const find = async () =>
    new Map((await findTagsByName(tx.db, workspaceId, [...wanted.keys()])).map(tag => [fold(tag.name), tag]))
  let found = await find()
  const missing = [...wanted].filter(([folded]) => !found.has(folded))
  if (missing.length > 0)
    refuseMoreThan(MAX_TAGS, (await countTags(tx.db, workspaceId)) + missing.length - 1, 'tags')
  for (const [, name] of missing)
    await insertTag(tx.db, {
      id: newId(),
      workspaceId,
      name,
      color: null,
      description: null,
      createdAt: at,
      updatedAt: at,
    })
  if (missing.length > 0) found = await find()
  return name => {
    const tag = found.get(fold(name))
    if (!tag) throw new Error('tag was not created')
    return tag
  }
}
