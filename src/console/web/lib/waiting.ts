/** What `waiting_for` and `sending_time` of the APIs say, in the chosen language. */
import type { components } from '#api/rest'
import { duration, number, shortTime, tr } from '../i18n/i18n'

export type WaitingFor = components['schemas']['WaitingFor']
type SendingTime = components['schemas']['SendingTime']

export function waitingSentence({ reason, limit }: WaitingFor): string {
  return tr().waiting.sentences[reason](number(limit ?? 0))
}

/** When it goes on; empty if that is not known. */
export function waitingUntil({ until }: WaitingFor): string {
  return until === undefined ? '' : tr().waiting.until(shortTime(until))
}

/**
 * When a message is tried next.
 *
 * @param at its next attempt, RFC 3339 @param now ms since epoch UTC
 * @returns a time to come, RFC 3339; `due` once that has passed; `held` while somebody has to release it
 */
export function nextAttempt(waiting: WaitingFor | null | undefined, at: string | null, now: number): string {
  if (waiting?.reason === 'hold' || waiting?.reason === 'restore_hold') return 'held'
  const next = waiting?.until ?? at
  return next === null || Date.parse(next) <= now ? 'due' : next
}

export function sendingTimeText({ duration_seconds: seconds, limited_by: by, limit }: SendingTime): string {
  const texts = tr().waiting
  const takes = seconds === null ? texts.takesMonths : texts.takes(duration(1_000 * seconds))
  const because =
    by !== null && by in texts.because ? texts.because[by as keyof typeof texts.because] : undefined
  return because ? `${takes} ${because(number(limit ?? 0))}` : takes
}
