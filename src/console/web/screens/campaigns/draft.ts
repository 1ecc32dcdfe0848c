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
  /** `list ID` or `segment ID`, of several; empty for a resend, whose audience is fixed. */
  readonly include: readonly string[]
  readonly exclude: readonly string[]
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
  return {
    name: campaign.name,
    subject: campaign.subject,
    preheader: campaign.preheader ?? '',
    templateId: campaign.template_id,
    ...audienceOf(campaign),
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

function audienceOf({
  list_id: listId,
  segment_id: segmentId,
  audience,
}: Pick<Campaign, 'list_id' | 'segment_id' | 'audience'>): Pick<Draft, 'include' | 'exclude'> {
  const one = (named: { readonly list_id?: string; readonly segment_id?: string }) =>
    named.list_id === undefined ? `segment ${named.segment_id ?? ''}` : `list ${named.list_id}`
  if (audience) return { include: audience.include.map(one), exclude: (audience.exclude ?? []).map(one) }
  if (listId !== null) return { include: [one({ list_id: listId })], exclude: [] }
  return { include: segmentId === null ? [] : [one({ segment_id: segmentId })], exclude: [] }
}

/** A single list or segment is stored as such. Rows in which nothing was chosen are left out. */
function audienceChanges(draft: Pick<Draft, 'include' | 'exclude'>) {
  const named = (values: readonly string[]) =>
    [...new Set(values)]
      .map(value => value.split(' '))
      .filter(([, id = '']) => id !== '')
      .map(([kind, id = '']) => (kind === 'segment' ? { segment_id: id } : { list_id: id }))
  const [include, exclude] = [named(draft.include), named(draft.exclude)]
  const [first] = include
  if (first === undefined) return {}
  return include.length === 1 && exclude.length === 0 ? first : { audience: { include, exclude } }
}

export function changesOf(draft: Draft): components['schemas']['CampaignChanges'] {
  const rate = Number(draft.ratePerHour)
  return {
    name: draft.name.trim(),
    subject: draft.subject.trim(),
    preheader: draft.preheader.trim() || null,
    template_id: draft.templateId,
    ...audienceChanges(draft),
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
