/** Reads the fields of a campaign from a request. Pure. Fails: AppError validation_error. */
import { refusal } from '../../audience/checks.js'
import { validText } from '../../content/merge/merge-text.js'
import { given } from '../../core/given.js'
import { readName } from '../../core/names.js'
import { readSenderFields } from '../../msa/rest/address-fields.js'
import { readSubject } from '../../msa/rest/content-fields.js'
import type { CampaignFields } from '../model/campaign.js'
import { checkSendWindow, type SendWindow } from '../model/send-window.js'
import type { CampaignChangesBody } from './campaign-schema.js'
import { readAbTest } from './read-ab-test.js'

/** Reads the fields present in the request, each on its own. @throws AppError validation_error */
export function readFields(body: CampaignChangesBody): Partial<CampaignFields> {
  if (body.list_id !== undefined && body.segment_id !== undefined)
    throw refusal('segment_id', 'give list_id or segment_id, not both')
  const subject = body.subject === undefined ? undefined : readSubject(body.subject)
  if (subject !== undefined) validText(subject, 'subject', 'subject')
  const { from_email, from_name, reply_to } = body
  readSenderFields(
    given({
      from_email: from_email ?? undefined,
      from_name: from_name ?? undefined,
      reply_to: reply_to ?? undefined,
    }),
  )
  return given({
    name: body.name === undefined ? undefined : readName(body.name),
    subject,
    templateId: body.template_id?.toLowerCase(),
    ...meant(body),
    fromEmail: from_email,
    fromName: from_name,
    replyTo: reply_to,
    preheader: body.preheader === undefined ? undefined : readPreheader(body.preheader),
    trackOpens: body.track_opens,
    trackClicks: body.track_clicks,
    ratePerHour: body.rate_per_hour,
    sendWindow: body.send_window === undefined ? undefined : readWindow(body.send_window),
    sendTime: body.send_time,
    abTest: body.ab_test === undefined ? undefined : body.ab_test && readAbTest(body.ab_test),
    isArchived: body.archive,
    isIndexed: body.archive_indexed,
  })
}

/** A list and a segment replace each other, and either replaces a resend. */
function meant({ list_id: list, segment_id: segment }: CampaignChangesBody) {
  const others = { listId: null, segmentId: null, resendOf: null, resendTo: null }
  if (list !== undefined) return { ...others, listId: list.toLowerCase() }
  return segment === undefined ? {} : { ...others, segmentId: segment.toLowerCase() }
}

/** One line; null and an empty one mean none. @throws AppError validation_error */
function readPreheader(given: string | null): string | null {
  const preheader = (given ?? '').replace(/\s+/g, ' ').trim()
  if (preheader === '') return null
  validText(preheader, 'html', 'preheader')
  return preheader
}

function readWindow(window: NonNullable<CampaignChangesBody['send_window']> | null): SendWindow | null {
  if (!window) return null
  checkSendWindow(window)
  const { days, from, until } = window
  return { ...(days ? { days: [...new Set(days)].sort() } : {}), from, until }
}
