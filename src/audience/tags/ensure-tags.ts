/**
 * Finds tags by name and creates missing ones, in the caller's transaction. For imports, automations and commands.
 * Fails: AppError limit_reached if the workspace would exceed its number of tags.
 */
import { fold } from '../../core/fold.js'
import type { NewId } from '../../core/ids.js'
import type { Tx } from '../../db/database.js'
import { MOST_TAGS, type Acting } from '../audience-parts.js'
import { refuseMoreThan } from '../checks.js'
import { countTags, findTagsByName, insertTag, type Tag } from './tag-store.js'

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
    refuseMoreThan(MOST_TAGS, (await countTags(tx.db, workspaceId)) + missing.length - 1, 'tags')
  for (const [, name] of missing)
    await insertTag(tx.db, {
      ...{ id: newId(), workspaceId, name, color: null, description: null, createdAt: at, updatedAt: at },
    })
  if (missing.length > 0) found = await find()
  return name => {
    const tag = found.get(fold(name))
    if (!tag) throw new Error('tag was not created')
    return tag
  }
}
