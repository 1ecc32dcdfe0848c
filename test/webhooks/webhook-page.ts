/** The part of `docs/webhooks.md` that is made: each event with the body that its receiver is sent. */
import { bodyOf, eventData } from '../../src/webhooks/events/webhook-consumer.js'
import {
  WEBHOOK_EVENT_NAMES,
  WEBHOOK_EVENTS,
  type WebhookEvent,
} from '../../src/webhooks/events/webhook-event.js'
import { sampleEvent, SAMPLE_MAIL } from './sample-events.js'

export const PAGE = 'docs/webhooks.md'
const MARKS = ['<!-- made by test/webhooks/write-webhook-page.ts -->\n', '<!-- end -->'] as const

/** @returns the page with that part regenerated @throws Error if it has no place for it */
export function withEvents(page: string): string {
  const [begin, end] = MARKS
  const [before, rest] = [page.indexOf(begin), page.indexOf(end)]
  if (before < 0 || rest < before) throw new Error(`${PAGE} has no place for events`)
  return page.slice(0, before + begin.length) + eventsMarkdown() + page.slice(rest)
}

function eventsMarkdown(): string {
  return WEBHOOK_EVENT_NAMES.map(
    event => `\n### ${event}\n\n${WEBHOOK_EVENTS[event]}\n\n\`\`\`json\n${sampleBody(event)}\n\`\`\`\n`,
  ).join('')
}

function sampleBody(event: WebhookEvent): string {
  const sample = sampleEvent(event)
  return JSON.stringify(JSON.parse(bodyOf(sample, eventData(sample, SAMPLE_MAIL))), null, 2)
}
