/** How the states of a message look. */
import type { Tone } from './tone'

const TONES: Readonly<Record<string, Tone>> = {
  delivered: 'good',
  opened: 'good',
  clicked: 'good',
  bounced: 'bad',
  complained: 'bad',
  failed: 'bad',
  deferred: 'warn',
  suppressed: 'warn',
  skipped: 'warn',
  queued: 'info',
  sent: 'info',
  scheduled: 'info',
}

export function toneOf(status: string): Tone {
  return TONES[status] ?? 'none'
}
