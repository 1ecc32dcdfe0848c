/**
 * Why a campaign waits: a function of what is stored, so that any node can tell.
 *
 * In the order in which the runner meets the reasons (`expansion/active-campaign.ts`):
 *
 *   paused                                       hold
 *   the server was restored from a backup        restore_hold
 *   nothing can be stored                        disk
 *   sample of the A/B test out, no winner        ab_test
 *   recipients pending, outside the window       sending_hours
 *   recipients pending, queue takes no more      queue_full
 *   recipients pending, limit used up            hourly_limit, daily_limit
 *   recipients pending, none due yet             usual_hour, rate
 *   all queued, none can be delivered now        hold, back_off, site_rate, retry
 *
 * A campaign that is scheduled for later does not wait: it says when it begins. Pure.
 */
import type { Allowance } from '../../accounts/sending-limit-store.js'
import { formatCount, limitWait, RESTORE_HELD } from '../../accounts/waits.js'
import { storageWait, waitingUntil, type Waiting } from '../../core/waiting.js'
import type { StorageFault } from '../../db/database.js'
import type { SentTest } from '../model/variant-store.js'
import type { Campaign } from '../model/campaign.js'
import { opensAt } from '../model/send-window.js'

export interface CampaignState {
  readonly now: number
  readonly campaign: Campaign
  readonly timezone: string
  readonly isRestoreHeld: boolean
  readonly fault: StorageFault | undefined
  readonly test: SentTest | undefined
  /** Undefined for a sandbox. */
  readonly allowance: Allowance | undefined
  /** When the mail of the next pending recipient is due, of a campaign with usual hours. */
  readonly nextDueAt: number | undefined
  /** Why all its queued mail waits, if `needsQueuedMail`; undefined: some is being delivered, or about to be. */
  readonly queued: Waiting | undefined
}

/** The queue has had no room for this long. */
const FULL_MS = 5_000

/** Whether nothing but its queued mail can tell why it waits. */
export function needsQueuedMail({ status, startedAt, pending, queued }: Campaign): boolean {
  return status === 'sending' && startedAt !== null && pending === 0 && queued > 0
}

/** @param roomAbove mails of a campaign above which the queue may have no room for more */
export function campaignWaitsFor(state: CampaignState, roomAbove: number): Waiting | undefined {
  const waiting = reasonOf(state, roomAbove)
  return waiting && waitingUntil(waiting, state.now)
}

function reasonOf(state: CampaignState, roomAbove: number): Waiting | undefined {
  const { campaign, now, isRestoreHeld, fault } = state
  const { status, scheduledAt, startedAt, pending, queued } = campaign
  if (status === 'paused') return { reason: 'hold', detail: 'It is paused; resume it to continue.' }
  const isDue = status === 'sending' || (status === 'scheduled' && scheduledAt !== null && scheduledAt <= now)
  if (!isDue) return undefined
  if (isRestoreHeld) return RESTORE_HELD
  if (fault && (pending > 0 || startedAt === null)) return storageWait(fault)
  if (startedAt === null) return undefined
  if (pending > 0) return pendingWait(state, roomAbove)
  return queued > 0 ? state.queued : undefined
}

function pendingWait(state: CampaignState, roomAbove: number): Waiting | undefined {
  const { campaign, test, now, timezone, allowance, nextDueAt } = state
  const { sendWindow, ratePerHour, nextAt } = campaign
  const isSampling = test?.variants.some(variant => variant.pending > 0) ?? false
  if (test?.drawnAt === null) return undefined
  if (test?.winner === null && !isSampling) return testWait(test)
  if (sendWindow) {
    const until = opensAt(sendWindow, now, timezone)
    if (until !== now) {
      const hours = `${sendWindow.from} to ${sendWindow.until}, ${timezone}`
      return {
        reason: 'sending_hours',
        ...(until === undefined ? {} : { until }),
        detail: `It is outside its sending hours (send_window: ${hours}), which are fixed once it is sent.`,
      }
    }
  }
  if (!campaign.isSandbox && campaign.queued >= roomAbove && nextAt !== null && nextAt <= now - FULL_MS)
    return {
      reason: 'queue_full',
      detail: `${formatCount(campaign.queued)} of its emails are queued; more are added as these are delivered.`,
    }
  if (allowance?.mails === 0 && allowance.fullest) return limitWait(allowance.fullest, allowance.moreAt)
  if (!isSampling && campaign.sendTime === 'usual_hour' && nextDueAt !== undefined && nextDueAt > now)
    return {
      reason: 'usual_hour',
      until: nextDueAt,
      detail: 'The next recipients usually read later (send_time: usual_hour).',
    }
  if (ratePerHour !== null && nextAt !== null && nextAt > now)
    return {
      reason: 'rate',
      until: nextAt,
      limit: ratePerHour,
      detail: `It sends ${formatCount(ratePerHour)} emails an hour (rate_per_hour), which is fixed once it is sent.`,
    }
  return undefined
}

function testWait({ decideAt }: SentTest): Waiting {
  if (decideAt === null)
    return { reason: 'ab_test', detail: 'Its A/B test waits for a person to choose the winner.' }
  return {
    reason: 'ab_test',
    until: decideAt,
    detail: 'Its A/B test is decided then; choose the winner to continue at once.',
  }
}
