/**
 * Reads template_id and template_data of one message, and finds the template.
 *
 * Called by `send-email.ts` and `batch-messages.ts`: the data with the other fields, the template where the contract has it among its
 * rules. In a sandbox templates of the live workspace are found as well. Fails: AppError validation_error, template_not_found.
 */
import type { ActingWorkspace } from '../../../accounts/workspace-store.js'
import { findTemplateHtml } from '../../../content/templates/template-store.js'
import type { MergeData } from '../../../content/rendering/merging.js'
import { given } from '../../../core/given.js'
import { AppError } from '../../../core/errors.js'
import { isUuid } from '../../../core/ids.js'
import { formatSize } from '../../../core/units.js'
import type { Queries } from '../../../db/database.js'
import type { MessageContent } from '../../../messages/content-store.js'
import { mergingOf } from '../../merged-content.js'
import type { MessageFields } from '../send-schema.js'
import type { ContentFields } from './content-fields.js'
import { invalidField } from './field-fault.js'

/** Characters of JSON: as much as a body may have. */
const MOST_DATA = 256 * 1_024

/** A template as mail is made of it. */
export interface AskedTemplate {
  readonly id: string
  readonly html: string
}

/** @throws AppError validation_error */
export function readTemplateData({ template_data: data }: MessageFields): MergeData | undefined {
  if (data === undefined || Object.keys(data).length === 0) return undefined
  const fault = findFault(data)
  if (fault !== undefined) throw invalidField('template_data', `template_data ${fault}`)
  return data
}

/** A message without template_id has none. @throws AppError template_not_found */
export async function findAskedTemplate(
  db: Queries,
  { id: workspaceId, liveId }: ActingWorkspace,
  asked: string | undefined,
): Promise<AskedTemplate | undefined> {
  if (asked === undefined) return undefined
  const id = asked.toLowerCase()
  const html = isUuid(id)
    ? ((await findTemplateHtml(db, workspaceId, id)) ??
      (workspaceId === liveId ? undefined : await findTemplateHtml(db, liveId, id)))
    : undefined
  if (html === undefined)
    throw new AppError('template_not_found', 'no template has this id', { path: 'template_id' })
  return { id, html }
}

/**
 * The content with all that it is made of: what the request says goes before what the template says.
 *
 * @throws AppError validation_error
 */
export function fillFields(
  workspace: ActingWorkspace,
  fields: ContentFields,
  template: AskedTemplate | undefined,
  data: MergeData | undefined,
): ContentFields & Pick<MessageContent, 'merging' | 'templateId'> {
  const { subject, html = template?.html, text } = fields
  const source = { subject, ...given({ html, text }) }
  const merging = mergingOf(workspace, { source, data, hasFooter: html !== undefined })
  return { ...fields, ...given({ html, templateId: template?.id, merging }) }
}

const TOO_LARGE = `must have at most ${formatSize(MOST_DATA)} as JSON`

/** Counts as it goes: what is far too large is not written down to be measured. */
function findFault(data: MergeData): string | undefined {
  let left = MOST_DATA
  let hasNul = false
  const waiting: unknown[] = [data]
  while (waiting.length > 0) {
    const value = waiting.pop()
    left -= 1
    if (typeof value === 'string') {
      left -= value.length
      hasNul ||= value.includes('\0')
    } else if (typeof value === 'object' && value !== null)
      for (const [key, item] of Object.entries(value)) {
        left -= Array.isArray(value) ? 1 : key.length
        waiting.push(item)
        if (left < 0) return TOO_LARGE
      }
    if (left < 0) return TOO_LARGE
  }
  // RFC 5322 §4: no message holds one.
  if (hasNul) return 'contains a NUL character'
  return JSON.stringify(data).length > MOST_DATA ? TOO_LARGE : undefined
}
