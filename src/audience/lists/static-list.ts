/** Finds lists by id. */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { findList, type List } from './list-store.js'

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
