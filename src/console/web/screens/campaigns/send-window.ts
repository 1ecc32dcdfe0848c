/** What is edited of a send window, and the request that stores it. */
import type { components } from '#api/rest'
import { tr, weekdayName } from '../../i18n/i18n'

export type SendWindow = components['schemas']['SendWindow']

export interface WindowDraft {
  /** 1 = Monday to 7 = Sunday, in this order. */
  readonly days: readonly number[]
  /** `HH:MM`. */
  readonly from: string
  /** `HH:MM`; if before `from`, on the next day. */
  readonly until: string
}

export const DAYS = [1, 2, 3, 4, 5, 6, 7] as const

export const NEW_WINDOW: WindowDraft = { days: [1, 2, 3, 4, 5], from: '09:00', until: '17:00' }

export function windowDraftOf(window: SendWindow | null): WindowDraft | null {
  if (!window) return null
  const { days = DAYS, from, until } = window
  return { days: [...days], from, until }
}

export function windowOf(draft: WindowDraft | null): SendWindow | null {
  if (!draft) return null
  const { days, from, until } = draft
  return { ...(days.length === DAYS.length ? {} : { days: [...days] }), from, until }
}

/** E.g. “Mon, Tue 09:00–17:00 (Europe/Berlin)”. */
export function windowText({ days, from, until }: SendWindow, timezone: string): string {
  const isEveryDay = days === undefined || days.length === DAYS.length
  const when = isEveryDay ? tr().sendWindow.everyDay : days.map(day => weekdayName(day, 'short')).join(', ')
  return `${when} ${from}–${until} (${timezone})`
}
