/** Finds a list that contacts can be put into. */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { findList, type List } from './list-store.js'

/** @param path of the field that names it, where one does @throws AppError not_found */
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

/** @throws AppError not_found; conflict for one whose members its conditions tell */
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
