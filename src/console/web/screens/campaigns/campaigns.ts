/** What the screens about campaigns share. */
import type { components } from '#api/rest'
import type { Tone } from '../../lib/tone'

export type Campaign = components['schemas']['Campaign']
export type CampaignCheck = components['schemas']['CampaignCheck']
export type CampaignStatus = Campaign['status']

export const STATUSES = [
  'draft',
  'scheduled',
  'sending',
  'paused',
  'completed',
  'cancelled',
  'failed',
] as const satisfies readonly CampaignStatus[]

const TONES: Readonly<Record<CampaignStatus, Tone>> = {
  draft: 'none',
  scheduled: 'info',
  sending: 'info',
  paused: 'warn',
  completed: 'good',
  cancelled: 'none',
  failed: 'bad',
}

export function toneOf(status: CampaignStatus): Tone {
  return TONES[status]
}

/** Its A/B test has gone out, and a person has to choose the winner: no moment is set at which it is decided. */
export function needsChoice({
  status,
  waiting_for: waiting,
}: Pick<Campaign, 'status' | 'waiting_for'>): boolean {
  return status === 'sending' && waiting?.reason === 'ab_test' && waiting.until === undefined
}

/** Recipients whose mail has ended, whatever became of it. */
export function settledOf({ progress }: Campaign): number {
  return progress.done + progress.skipped + progress.cancelled
}

/** When the rest will be done at the pace so far, ms from now; undefined while that says nothing. */
export function remainingMs(campaign: Campaign, now: number): number | undefined {
  const settled = settledOf(campaign)
  const startedAt = campaign.started_at === null ? NaN : Date.parse(campaign.started_at)
  const left = campaign.total_recipients - settled
  // With an A/B test it waits for the winner in between.
  if (campaign.ab_test || campaign.status !== 'sending' || settled === 0 || left <= 0 || !(now > startedAt))
    return undefined
  return ((now - startedAt) * left) / settled
}
