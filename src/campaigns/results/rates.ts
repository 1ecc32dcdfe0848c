import type { StatsFields } from '../campaign-events.js'
import type { Stats } from '../records/campaign.js'

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

/** Capped at 1: an open can be counted before its delivery. */
function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.min(1, Math.round((10_000 * part) / whole) / 10_000)
}
