/** What is edited of a feed, and the request that stores it. */
import type { components } from '#api/rest'
import { windowDraftOf, windowOf, type WindowDraft } from '../campaigns/send-window'

export type Feed = components['schemas']['Feed']
export type FeedRun = components['schemas']['FeedRun']
export type Frequency = Feed['schedule']['every']

export const FREQUENCIES = ['daily', 'weekly', 'monthly'] as const satisfies readonly Frequency[]

export interface Draft {
  readonly name: string
  readonly url: string
  readonly subject: string
  readonly templateId: string
  /** `list ID` or `segment ID`. */
  readonly audience: string
  readonly every: Frequency
  readonly at: string
  /** 1 = Monday to 7 = Sunday. */
  readonly weekday: string
  readonly day: string
  readonly maxItems: string
  /** Of its campaigns; null: at any time. */
  readonly sendWindow: WindowDraft | null
  readonly enabled: boolean
}

export const NEW: Draft = {
  name: '',
  url: '',
  subject: '',
  templateId: '',
  audience: '',
  every: 'weekly',
  at: '09:00',
  weekday: '1',
  day: '1',
  maxItems: '10',
  sendWindow: null,
  enabled: true,
}

export function draftOf(feed: Feed): Draft {
  const { schedule, list_id: listId, segment_id: segmentId } = feed
  return {
    name: feed.name,
    url: feed.url,
    subject: feed.subject,
    templateId: feed.template_id,
    audience: segmentId === null ? `list ${listId ?? ''}` : `segment ${segmentId}`,
    every: schedule.every,
    at: schedule.at,
    weekday: String(schedule.weekday ?? NEW.weekday),
    day: String(schedule.day ?? NEW.day),
    maxItems: String(feed.max_items),
    sendWindow: windowDraftOf(feed.send_window),
    enabled: feed.enabled,
  }
}

export function bodyOf(draft: Draft): components['schemas']['NewFeed'] {
  const [kind, id = ''] = draft.audience.split(' ')
  return {
    name: draft.name.trim(),
    url: draft.url.trim(),
    subject: draft.subject.trim(),
    template_id: draft.templateId,
    ...(kind === 'segment' ? { segment_id: id } : { list_id: id }),
    schedule: {
      every: draft.every,
      at: draft.at,
      ...(draft.every === 'weekly' ? { weekday: Number(draft.weekday) } : {}),
      ...(draft.every === 'monthly' ? { day: Number(draft.day) } : {}),
    },
    max_items: Number(draft.maxItems),
    send_window: windowOf(draft.sendWindow),
    enabled: draft.enabled,
  }
}
