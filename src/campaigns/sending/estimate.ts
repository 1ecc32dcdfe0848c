/**
 * How long it takes to queue a campaign's mail at today's limits: told before it is sent.
 *
 * Goes through the hours that lie ahead with the workspace's limits, what is used of them, and the campaign's rate and sending hours. Other
 * mail of the workspace and the speed of the receiving hosts are not foreseen. Pure.
 */
import { windowEnd, type WindowKind } from '../../accounts/sending-limit-store.js'
import { formatCount } from '../../accounts/waits.js'
import type { WaitReason } from '../../core/waiting.js'
import type { Campaign } from '../model/campaign.js'
import { isWithin, opensAt } from '../model/send-window.js'

export interface SendingPlan extends Pick<Campaign, 'ratePerHour' | 'sendWindow' | 'sendTime' | 'abTest'> {
  readonly recipients: number
  /** Ms since epoch UTC. */
  readonly startsAt: number
  readonly timezone: string
  /** Mails an hour and day; 0: unlimited. */
  readonly limits: Readonly<Record<WindowKind, number>>
  /** Mails left in the windows in which it starts; Infinity: unlimited. */
  readonly left: Readonly<Record<WindowKind, number>>
}

export interface SendingEstimate {
  /** Until the last mail is queued; undefined: longer than `MAX_DAYS`. */
  readonly durationMs: number | undefined
  /** Reason for most of the time; undefined if it takes less than a minute. */
  readonly limitedBy: WaitReason | undefined
  readonly limit: number | undefined
  /** In English. */
  readonly detail: string
}

export const MAX_DAYS = 90
const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000]
/** Step within sending hours. */
const STEP_MS = 15 * MINUTE_MS

export function estimateSending(plan: SendingPlan): SendingEstimate {
  const spent = new Map<WaitReason, number>()
  const queued = timeToQueue(plan, spent)
  const durationMs = queued === undefined ? undefined : queued + plannedMs(plan, queued, spent)
  const [longest] = [...spent].sort((one, other) => other[1] - one[1])
  const limitedBy = longest && longest[1] >= MINUTE_MS ? longest[0] : undefined
  const limit = limitOf(plan, limitedBy)
  const how = limitedBy === undefined ? '' : HOW[limitedBy]?.(plan, limit)
  const isOpen = plan.abTest?.decideAfterMinutes === null
  const detail = `${inWords(durationMs)}${how ? `: ${how}` : ''}${isOpen ? ', and until somebody chooses the winner' : ''}.`
  return { durationMs, limitedBy, limit, detail: detail.charAt(0).toUpperCase() + detail.slice(1) }
}

const HOW: Partial<Record<WaitReason, (plan: SendingPlan, limit: number | undefined) => string>> = {
  hourly_limit: (_, limit = 0) =>
    `the workspace may send ${formatCount(limit)} emails an hour (hourly_limit)`,
  daily_limit: (_, limit = 0) => `the workspace may send ${formatCount(limit)} emails a day (daily_limit)`,
  rate: (_, limit = 0) => `the campaign sends ${formatCount(limit)} emails an hour (rate_per_hour)`,
  sending_hours: ({ sendWindow }) =>
    `the campaign is sent from ${sendWindow?.from ?? ''} to ${sendWindow?.until ?? ''} (send_window)`,
  usual_hour: () => 'each recipient is mailed at their usual hour (send_time)',
  ab_test: () => 'the A/B test is decided in between (decide_after_minutes)',
}

function limitOf({ limits, ratePerHour }: SendingPlan, reason: WaitReason | undefined): number | undefined {
  if (reason === 'hourly_limit') return limits.hour
  if (reason === 'daily_limit') return limits.day
  return reason === 'rate' ? (ratePerHour ?? undefined) : undefined
}

/** @param spent gets the time that each limit takes @returns ms; undefined if it is too long */
function timeToQueue(plan: SendingPlan, spent: Map<WaitReason, number>): number | undefined {
  const { startsAt, sendWindow, timezone, ratePerHour, limits } = plan
  const spend = (reason: WaitReason, ms: number) => spent.set(reason, (spent.get(reason) ?? 0) + ms)
  const ends = {
    hour: windowEnd('hour', startsAt, timezone),
    day: windowEnd('day', startsAt, timezone),
  }
  const room = { ...plan.left }
  const gapMs = ratePerHour === null ? 0 : HOUR_MS / ratePerHour
  let at = startsAt
  for (let left = plan.recipients; left > 0;) {
    if (at - startsAt > MAX_DAYS * DAY_MS) return undefined
    for (const kind of ['hour', 'day'] as const)
      if (at >= ends[kind]) {
        ends[kind] = windowEnd(kind, at, timezone)
        room[kind] = limits[kind] === 0 ? Infinity : limits[kind]
      }
    if (sendWindow && !isWithin(sendWindow, at, timezone)) {
      const opening = opensAt(sendWindow, at, timezone)
      if (opening === undefined) return undefined
      spend('sending_hours', opening - at)
      at = opening
      continue
    }
    const full = room.day <= 0 ? 'day' : room.hour <= 0 ? 'hour' : undefined
    if (full) {
      spend(full === 'day' ? 'daily_limit' : 'hourly_limit', ends[full] - at)
      at = ends[full]
      continue
    }
    const until = Math.min(
      ends.hour,
      ends.day,
      sendWindow ? Math.floor(at / STEP_MS + 1) * STEP_MS : Infinity,
    )
    const most = gapMs === 0 ? Infinity : Math.max(1, Math.ceil((until - at) / gapMs))
    const mails = Math.min(left, room.hour, room.day, most)
    left -= mails
    for (const kind of ['hour', 'day'] as const) room[kind] -= mails
    const tookMs = (left > 0 ? mails : mails - 1) * gapMs
    if (tookMs > 0) spend('rate', tookMs)
    at += tookMs
  }
  return at - startsAt
}

/** Delays that the campaign itself plans: its A/B test and each contact's usual hour. */
function plannedMs(
  { sendTime, abTest }: SendingPlan,
  queuedMs: number,
  spent: Map<WaitReason, number>,
): number {
  const decideMs = (abTest?.decideAfterMinutes ?? 0) * MINUTE_MS
  if (decideMs > 0) spent.set('ab_test', decideMs)
  const usualMs = sendTime === 'usual_hour' ? Math.max(0, DAY_MS - queuedMs) : 0
  if (usualMs > 0) spent.set('usual_hour', usualMs)
  return decideMs + usualMs
}

function inWords(ms: number | undefined): string {
  if (ms === undefined) return `more than ${MAX_DAYS} days`
  if (ms < MINUTE_MS) return 'less than a minute'
  const [unit, count] =
    ms < 90 * MINUTE_MS
      ? (['minute', ms / MINUTE_MS] as const)
      : ms < 48 * HOUR_MS
        ? (['hour', ms / HOUR_MS] as const)
        : (['day', ms / DAY_MS] as const)
  const rounded = Math.round(count)
  return `about ${rounded} ${unit}${rounded === 1 ? '' : 's'}`
}
