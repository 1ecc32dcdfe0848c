/** What the states of a message are called, and how they look. */
import type { Tone } from './tone'

const TONES: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  opened: 'good',
  clicked: 'good',
  bounced: 'bad',
  complained: 'bad',
  failed: 'bad',
  deferred: 'warn',
  captured: 'info',
  suppressed: 'warn',
  skipped: 'warn',
  queued: 'info',
  sent: 'info',
  scheduled: 'info',
}

/**
 * What lists say of a message: its place in the queue while it waits, and `captured` instead of `delivered` if it never left.
 *
 * That a person opened it in the local inbox stays visible.
 */
export function shownStatus(message: {
  readonly status: string
  readonly delivery_state: string | null
  readonly is_captured: boolean
}): string {
  const { status, delivery_state: state, is_captured: isCaptured } = message
  return isCaptured && status === 'delivered' ? 'captured' : (state ?? status)
}

export function toneOf(status: string): Tone {
  return TONES[status] ?? 'none'
}
