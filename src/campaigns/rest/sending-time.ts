/** `sending_time` of answers about a campaign that is not sent yet. */
import Type, { type Static } from 'typebox'
import { leftInWindows } from '../../accounts/sending-limit-store.js'
import { WAIT_REASONS } from '../../core/waiting.js'
import { IntegerOrNull, orNull } from '../../http/answer/answer-fields.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import type { Campaign } from '../model/campaign.js'
import { estimateSending, MAX_DAYS } from '../sending/estimate.js'

const SendingTime = Type.Object(
  {
    duration_seconds: IntegerOrNull({
      description: `Until the last email is queued; null: more than ${MAX_DAYS} days.`,
    }),
    limited_by: orNull(Type.Enum([...WAIT_REASONS]), {
      description: 'What most of that time is spent on; null if it takes less than a minute.',
    }),
    limit: IntegerOrNull({ description: 'Emails per hour or day that limited_by allows.' }),
    detail: Type.String({ description: 'In English, for people.' }),
  },
  { title: 'SendingTime' },
)

export const SendingTimeOrNull = orNull(SendingTime, {
  description:
    'How long sending takes at the limits, rate and sending hours that hold now, if nothing else is sent. Null once the campaign is sent, and for sandboxes.',
})

export async function readSendingTime(
  { send: { database, clock, senders } }: Pick<CampaignParts, 'send'>,
  campaign: Campaign,
  recipients: number,
): Promise<Static<typeof SendingTimeOrNull>> {
  const { status, isSandbox, scheduledAt } = campaign
  if (isSandbox || (status !== 'draft' && status !== 'scheduled')) return null
  const now = clock.now()
  const workspace = await senders.workspace(campaign.workspaceId)
  const startsAt = Math.max(now, scheduledAt ?? now)
  const { ratePerHour, sendWindow, sendTime, abTest } = campaign
  const { durationMs, limitedBy, limit, detail } = estimateSending({
    recipients,
    startsAt,
    ratePerHour,
    sendWindow,
    sendTime,
    abTest,
    timezone: workspace.timezone,
    limits: { hour: workspace.hourlyLimit, day: workspace.dailyLimit },
    left: await leftInWindows(database.reader, workspace, startsAt),
  })
  return {
    duration_seconds: durationMs === undefined ? null : Math.ceil(durationMs / 1_000),
    limited_by: limitedBy ?? null,
    limit: limit ?? null,
    detail,
  }
}
