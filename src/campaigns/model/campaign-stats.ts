/** A campaign's counts and rates as the API and its events show them. Pure. */
import type { ShownWaiting } from '../../http/answer/waiting-for.js'
import type { Campaign, Stats } from './campaign.js'

interface AboutCampaign {
  readonly campaignId: string
  readonly name: string
  readonly totalRecipients: number
}

/** In the API's names. */
export interface StatsFields {
  readonly sends: number
  readonly delivered: number
  readonly opens: number
  readonly unique_opens: number
  readonly clicks: number
  readonly unique_clicks: number
  readonly bounces: number
  readonly complaints: number
  readonly unsubscribes: number
}

declare module '../../events/event.js' {
  interface ContactEvents {
    /** The recipients are fixed and the start time has come; precedes the first email. */
    'campaign.sent': ContactEventOf<'campaign.sent', AboutCampaign>
    /** All its emails are delivered or failed. */
    'campaign.completed': ContactEventOf<
      'campaign.completed',
      AboutCampaign & { readonly stats: StatsFields }
    >
    /** Its A/B test now waits for a person to choose the winner. */
    'campaign.winner_required': ContactEventOf<'campaign.winner_required', AboutCampaign>
    /** It has waited for a minute, for a reason that was not told in this wait. */
    'campaign.waiting': ContactEventOf<
      'campaign.waiting',
      AboutCampaign & { readonly waitingFor: ShownWaiting | null }
    >
  }
}

/** Head and common payload of events about a campaign. */
export function aboutCampaign(
  {
    id,
    workspaceId,
    isSandbox,
    name,
    recipients,
  }: Pick<Campaign, 'id' | 'workspaceId' | 'isSandbox' | 'name' | 'recipients'>,
  now: number,
) {
  const payload: AboutCampaign = { campaignId: id, name, totalRecipients: recipients }
  return { workspaceId, messageId: null, isSandbox, occurredAt: now, payload }
}

export function statsFields(stats: Stats): StatsFields {
  return {
    sends: stats.sends,
    delivered: stats.deliveries,
    opens: stats.opens,
    unique_opens: stats.uniqueOpens,
    clicks: stats.clicks,
    unique_clicks: stats.uniqueClicks,
    bounces: stats.bounces,
    complaints: stats.complaints,
    unsubscribes: stats.unsubscribes,
  }
}

/** Fractions from 0 to 1, rounded to four decimals. */
export function ratesOf(stats: Stats) {
  const { sends, deliveries } = stats
  return {
    delivery_rate: share(deliveries, sends),
    open_rate: share(stats.uniqueOpens, deliveries),
    click_rate: share(stats.uniqueClicks, deliveries),
    bounce_rate: share(stats.bounces, sends),
    complaint_rate: share(stats.complaints, deliveries),
    unsubscribe_rate: share(stats.unsubscribes, deliveries),
  }
}

/** A fraction rounded to four decimals. Capped at 1: an open can be counted before its delivery. */
export function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(1, Math.round((10_000 * part) / whole) / 10_000)
}
