/**
 * Finds static lists by name and creates missing ones. Called by imports, in their transaction.
 * Fails: AppError limit_reached if the workspace would exceed its number of lists.
 */
import { fold } from '../../core/fold.js'
import type { NewId } from '../../core/ids.js'
import type { Tx } from '../../db/database.js'
import { MOST_LISTS, type Acting } from '../audience-parts.js'
import { refuseMoreThan } from '../checks.js'
import { countLists, findStaticLists, insertList, type NamedList } from './list-store.js'

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
    refuseMoreThan(MOST_LISTS, (await countLists(tx.db, workspaceId)) + missing.length - 1, 'lists')
  for (const [, name] of missing)
    await insertList(tx.db, {
      ...{ id: newId(), workspaceId, name, description: null, type: 'static', conditions: null },
      ...{ isPublic: false, doubleOptIn: false, createdAt: at, updatedAt: at },
    })
  if (missing.length > 0) found = await find()
  return name => {
    const list = found.get(fold(name))
    if (!list) throw new Error('a list was not created')
    return list
  }
}
