/** Why something waits, of what holds for a whole workspace or appliance. Pure. */
import type { Waiting } from '../core/waiting.js'
import type { FullWindow } from './sending-limit-store.js'

export const RESTORE_HELD: Waiting = {
  reason: 'restore_hold',
  detail:
    'The mail server was restored from a backup and sends nothing until an operator releases the queue (postroad queue release --all).',
}

/** @param moreAt when the window ends, ms since epoch UTC */
export function limitWait({ kind, limit }: FullWindow, moreAt: number): Waiting {
  const [reason, name] = NAMES[kind]
  const detail = `The workspace has used its ${name} limit of ${formatCount(limit)} emails (${reason}); an operator can raise it.`
  return { reason, until: moreAt, limit, detail }
}

const NAMES = { hour: ['hourly_limit', 'hourly'], day: ['daily_limit', 'daily'] } as const

export function formatCount(count: number): string {
  return count.toLocaleString('en')
}
