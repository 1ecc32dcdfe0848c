/** Reads the fields of a campaign from a request. Pure. Fails: AppError validation_error. */
import { refusal } from '../../audience/checks.js'
import { validText } from '../../content/merge/merge-text.js'
import { given } from '../../core/given.js'
import { readName } from '../../core/names.js'
import { readSenderFields } from '../../msa/rest/address-fields.js'
import { readSubject } from '../../msa/rest/content-fields.js'
import type { CampaignFields, NamedAudience } from '../model/campaign.js'
import { checkSendWindow, type SendWindow } from '../model/send-window.js'
import type { CampaignChangesBody, NamedAudienceBody } from './campaign-schema.js'
import { readAbTest } from './read-ab-test.js'

/** Reads the fields present in the request, each on its own. @throws AppError validation_error */
export function readFields(body: CampaignChangesBody): Partial<CampaignFields> {
  if (body.list_id !== undefined && body.segment_id !== undefined)
    throw refusal('segment_id', 'give list_id or segment_id, not both')
  if (body.audience !== undefined && (body.list_id !== undefined || body.segment_id !== undefined))
    throw refusal('audience', 'give audience alone, without list_id and segment_id')
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

/** A list, a segment and an audience of several replace each other, and each replaces a resend. */
function meant({ list_id: list, segment_id: segment, audience }: CampaignChangesBody) {
  const others = { listId: null, segmentId: null, audience: null, resendOf: null, resendTo: null }
  if (audience !== undefined)
    return {
      ...others,
      audience: {
        include: audience.include.map((one, at) => readNamed(one, `audience.include.${at}`)),
        exclude: (audience.exclude ?? []).map((one, at) => readNamed(one, `audience.exclude.${at}`)),
      },
    }
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

function readNamed({ list_id: list, segment_id: segment }: NamedAudienceBody, path: string): NamedAudience {
  if (list !== undefined && segment === undefined) return { listId: list.toLowerCase() }
  if (segment !== undefined && list === undefined) return { segmentId: segment.toLowerCase() }
  throw refusal(path, 'give either list_id or segment_id')
}

function readWindow(window: NonNullable<CampaignChangesBody['send_window']> | null): SendWindow | null {
  if (!window) return null
  checkSendWindow(window)
  const { days, from, until } = window
  return { ...(days ? { days: [...new Set(days)].sort() } : {}), from, until }
}
