/**
 * Validates the campaign fields of a request and checks that the template and the list or segment exist.
 *
 * Called by the routes before the transaction and, for references that may have changed, inside it. The sender is resolved on sending.
 * Fails: AppError validation_error with the field's path, template_not_found, not_found.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { checkName, refusal } from '../../audience/checks.js'
import { findList } from '../../audience/lists/list-store.js'
import { findSegment } from '../../audience/segments/segment-store.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import type { Queries } from '../../db/database.js'
import { findAskedTemplate, requireReadable } from '../../msa/merged-content.js'
import { readSenderFields } from '../../msa/rest/address-fields.js'
import { readSubject } from '../../msa/rest/content-fields.js'
import { checkSendWindow, type SendWindow } from '../sending/send-window.js'
import type { CampaignFields } from './campaign.js'
import type { CampaignChangesBody } from './campaign-schema.js'

/** Defaults of a new campaign. */
export const NOTHING_SAID = {
  listId: null,
  segmentId: null,
  resendOf: null,
  resendTo: null,
  fromEmail: null,
  fromName: null,
  replyTo: null,
  trackOpens: null,
  trackClicks: null,
  ratePerHour: null,
  sendWindow: null,
} as const satisfies Partial<CampaignFields>

/** Reads the fields present in the request, each on its own. @throws AppError validation_error */
export function readFields(body: CampaignChangesBody): Partial<CampaignFields> {
  if (body.list_id !== undefined && body.segment_id !== undefined)
    throw refusal('segment_id', 'give list_id or segment_id, not both')
  const subject = body.subject === undefined ? undefined : readSubject(body.subject)
  if (subject !== undefined) requireReadable(subject, 'subject', 'subject')
  const { from_email, from_name, reply_to } = body
  readSenderFields(
    given({
      from_email: from_email ?? undefined,
      from_name: from_name ?? undefined,
      reply_to: reply_to ?? undefined,
    }),
  )
  return given({
    name: body.name === undefined ? undefined : checkName(body.name),
    subject,
    templateId: body.template_id?.toLowerCase(),
    ...meant(body),
    fromEmail: from_email,
    fromName: from_name,
    replyTo: reply_to,
    trackOpens: body.track_opens,
    trackClicks: body.track_clicks,
    ratePerHour: body.rate_per_hour,
    sendWindow: body.send_window === undefined ? undefined : readWindow(body.send_window),
  })
}

/** A list and a segment replace each other, and either replaces a resend. */
function meant({ list_id: list, segment_id: segment }: CampaignChangesBody) {
  const others = { listId: null, segmentId: null, resendOf: null, resendTo: null }
  if (list !== undefined) return { ...others, listId: list.toLowerCase() }
  return segment === undefined ? {} : { ...others, segmentId: segment.toLowerCase() }
}

function readWindow(window: NonNullable<CampaignChangesBody['send_window']> | null): SendWindow | null {
  if (!window) return null
  checkSendWindow(window)
  const { days, from, until } = window
  return { ...(days ? { days: [...new Set(days)].sort() } : {}), from, until }
}

/** Referenced objects must exist. @throws AppError template_not_found, not_found, validation_error */
export async function requireNamed(
  db: Queries,
  workspace: ActingWorkspace,
  fields: Pick<CampaignFields, 'templateId' | 'listId' | 'segmentId' | 'resendOf'>,
): Promise<void> {
  const { listId, segmentId, resendOf } = fields
  if (listId === null && segmentId === null && resendOf === null)
    throw refusal('list_id', 'give list_id or segment_id')
  await findAskedTemplate(db, workspace, fields.templateId)
  if (listId !== null && !(isUuid(listId) && (await findList(db, workspace.id, listId))))
    throw new AppError('not_found', 'list_id: no list has this id', { path: 'list_id' })
  if (segmentId !== null && !(isUuid(segmentId) && (await findSegment(db, workspace.id, segmentId))))
    throw new AppError('not_found', 'segment_id: no segment has this id', { path: 'segment_id' })
}
