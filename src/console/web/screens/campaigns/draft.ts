/** What is edited of a campaign, and the request that stores it. */
import type { components } from '#api/rest'
import { testDraftOf, testOf, type AbTestDraft } from './ab-test'
import type { Campaign } from './campaigns'
import { windowDraftOf, windowOf, type WindowDraft } from './send-window'

export interface Draft {
  readonly name: string
  readonly subject: string
  readonly preheader: string
  readonly templateId: string
  /** `list ID` or `segment ID`; empty for a resend, whose audience is fixed. */
  readonly audience: string
  readonly fromEmail: string
  readonly fromName: string
  readonly replyTo: string
  /** Mails per hour; empty: no limit. */
  readonly ratePerHour: string
  readonly isAtUsualHour: boolean
  /** Null: at any time. */
  readonly sendWindow: WindowDraft | null
  readonly archive: boolean
  readonly abTest: AbTestDraft | null
}

export function draftOf(campaign: Campaign): Draft {
  const { list_id: listId, segment_id: segmentId } = campaign
  return {
    name: campaign.name,
    subject: campaign.subject,
    preheader: campaign.preheader ?? '',
    templateId: campaign.template_id,
    audience: listId !== null ? `list ${listId}` : segmentId !== null ? `segment ${segmentId}` : '',
    fromEmail: campaign.from_email ?? '',
    fromName: campaign.from_name ?? '',
    replyTo: campaign.reply_to ?? '',
    ratePerHour: campaign.rate_per_hour === null ? '' : String(campaign.rate_per_hour),
    isAtUsualHour: campaign.send_time === 'usual_hour',
    sendWindow: windowDraftOf(campaign.send_window),
    archive: campaign.archive,
    abTest: testDraftOf(campaign.ab_test),
  }
}

export function changesOf(draft: Draft): components['schemas']['CampaignChanges'] {
  const [kind, id = ''] = draft.audience.split(' ')
  const rate = Number(draft.ratePerHour)
  return {
    name: draft.name.trim(),
    subject: draft.subject.trim(),
    preheader: draft.preheader.trim() || null,
    template_id: draft.templateId,
    ...(kind === 'list' ? { list_id: id } : kind === 'segment' ? { segment_id: id } : {}),
    from_email: draft.fromEmail.trim() || null,
    from_name: draft.fromName.trim() || null,
    reply_to: draft.replyTo.trim() || null,
    rate_per_hour: draft.ratePerHour.trim() === '' ? null : rate,
    send_time: draft.isAtUsualHour ? 'usual_hour' : 'at_once',
    send_window: windowOf(draft.sendWindow),
    archive: draft.archive,
    ab_test: testOf(draft.abTest),
  }
}
