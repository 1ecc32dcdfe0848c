/** Finds the template that a mail is to be made from. Used by all ways of sending. */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { MergeText } from '../merge/merge-text.js'
import { findTemplateHtml } from './template-store.js'

export interface AskedTemplate {
  readonly id: string
  readonly html: MergeText
}

/**
 * A sandbox also finds its live workspace's templates.
 *
 * @param asked the template's id, if the request names one
 * @param path of the field that names it
 * @throws AppError template_not_found
 */
export async function findAskedTemplate(
  db: Queries,
  { id: workspaceId, liveId }: { readonly id: string; readonly liveId: string },
  asked: string | undefined,
  path = 'template_id',
): Promise<AskedTemplate | undefined> {
  if (asked === undefined) return undefined
  const id = asked.toLowerCase()
  const html = isUuid(id)
    ? ((await findTemplateHtml(db, workspaceId, id)) ??
      (workspaceId === liveId ? undefined : await findTemplateHtml(db, liveId, id)))
    : undefined
  if (html === undefined)
    throw new AppError('template_not_found', `${path}: no template has this id`, { path })
  return { id, html: new MergeText(html, 'html', true) }
}
