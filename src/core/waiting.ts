/** Why something waits: a campaign, a message, a run, an import or a site. Pure; `http/answer/waiting-for.ts` shows it in the APIs. */

export const WAIT_REASONS = [
  /** The workspace's hourly or daily limit is used up. */
  'hourly_limit',
  'daily_limit',
  /** The campaign's `rate_per_hour`. */
  'rate',
  /** Outside the campaign's send window. */
  'sending_hours',
  /** The hours at which the next recipients usually read. */
  'usual_hour',
  /** Paused or held by a person. */
  'hold',
  /** Nothing is sent from a restored backup until an operator releases the queue. */
  'restore_hold',
  /** The receiving hosts asked for a pause, or could not be reached. */
  'back_off',
  /** The rate set for the receiving hosts. */
  'site_rate',
  /** The last attempt failed for the time being. */
  'retry',
  /** The result of an A/B test. */
  'ab_test',
  /** So much of its mail is queued that no more is added. */
  'queue_full',
  /** Imports run one after another. */
  'earlier_import',
  /** The mail server cannot store more. */
  'disk',
] as const
export type WaitReason = (typeof WAIT_REASONS)[number]

export interface Waiting {
  readonly reason: WaitReason
  /** The moment at which it may go on, ms since epoch UTC, later than now; absent if it is not known. */
  readonly until?: number
  /** The number that limits it, e.g. of mails an hour; absent without one. */
  readonly limit?: number
  /** One sentence in English with what to do about it. */
  readonly detail: string
}

/** Without a moment that has passed. */
export function waitingUntil(waiting: Waiting, now: number): Waiting {
  const { until, ...others } = waiting
  return until === undefined || (until > now && Number.isFinite(until)) ? waiting : others
}

/** @param fault of the database, e.g. `disk_low` */
export function storageWait(fault: { readonly code: string }): Waiting {
  const detail =
    fault.code === 'disk_low'
      ? 'The disk of the mail server is nearly full; it continues once there is space.'
      : 'The mail server cannot write its database; it continues once it can.'
  return { reason: 'disk', detail }
}
