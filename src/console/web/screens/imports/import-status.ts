/** How the states of an import look. */
import type { Tone } from '../../lib/tone'

const TONES: Readonly<Record<string, Tone>> = {
  completed: 'good',
  failed: 'bad',
  processing: 'info',
  queued: 'info',
  receiving: 'info',
  cancelled: 'warn',
}

export function toneOf(status: string): Tone {
  return TONES[status] ?? 'none'
}

export function isUnderWay(status: string): boolean {
  return ['receiving', 'queued', 'processing'].includes(status)
}
