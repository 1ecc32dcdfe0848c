/**
 * Replies that deferred or refused mail in the last hour, alike ones grouped, for the operator's views.
 *
 * Kept in memory and bounded: beyond `MAX_GROUPS`, the group that was seen least recently is forgotten. Begins with the start of the server.
 */
import { addressDomain } from '../../mail/address.js'
import type { Clock } from '../../world/time/clock.js'
import type { LoggedAttempt } from '../delivery/record-outcomes.js'

const MAX_GROUPS = 2_000
/** Attempts are counted by five minutes, so that old ones can be forgotten. */
const SLOT_MS = 5 * 60_000
const SLOTS = 12
const MAX_REPLY = 400

export interface ReplyGroup {
  readonly workspaceId: string
  readonly destination: string
  readonly kind: 'deferred' | 'bounced'
  /** The latest, as it came. */
  readonly reply: string
  /** Attempts of the last hour. */
  readonly count: number
  readonly lastAt: number
  /** The latest message that got it. */
  readonly messageId: string
}

interface Group extends Omit<ReplyGroup, 'count'> {
  /** Attempts by number of the slot. */
  readonly slots: Map<number, number>
}

export class RecentReplies {
  private readonly clock: Pick<Clock, 'now'>
  /** By what they have in common, least recently seen first. */
  private readonly groups = new Map<string, Group>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.clock = clock
  }

  note({ job, outcome, verdict, finishedAt }: LoggedAttempt): void {
    const kind = verdict.kind === 'deferred' || verdict.kind === 'bounced' ? verdict.kind : undefined
    if (kind === undefined) return
    const { workspaceId, messageId } = job
    const destination = addressDomain(job.recipient)
    const reply = outcome.summary.slice(0, MAX_REPLY)
    const key = [workspaceId, destination, kind, alike(reply)].join('\n')
    const slots = this.groups.get(key)?.slots ?? new Map<number, number>()
    const slot = Math.floor(finishedAt / SLOT_MS)
    slots.set(slot, (slots.get(slot) ?? 0) + 1)
    // Last, as the most recently seen one.
    this.groups.delete(key)
    this.groups.set(key, { workspaceId, destination, kind, reply, lastAt: finishedAt, messageId, slots })
    if (this.groups.size > MAX_GROUPS)
      for (const [oldest] of this.groups) return void this.groups.delete(oldest)
  }

  /** Those of the last hour. */
  list(): ReplyGroup[] {
    const first = Math.floor(this.clock.now() / SLOT_MS) - SLOTS + 1
    const listed: ReplyGroup[] = []
    for (const [key, { slots, ...group }] of this.groups) {
      for (const slot of slots.keys()) if (slot < first) slots.delete(slot)
      if (slots.size === 0) this.groups.delete(key)
      else listed.push({ ...group, count: [...slots.values()].reduce((sum, count) => sum + count, 0) })
    }
    return listed
  }
}

/** Equal for replies of the same meaning: without addresses, numbers and identifiers. */
export function alike(reply: string): string {
  return reply
    .toLowerCase()
    .replace(/<[^<>]*>|[^\s<]+/g, word =>
      word.startsWith('<') || word.slice(1, -1).includes('@') ? '@' : word,
    )
    .replace(/https?:\/\/\S+/g, '/')
    .replace(/\S{4,}/g, word => (/\d/.test(word) && !/^\d\.\d{1,3}\.\d{1,3}$/.test(word) ? '#' : word))
}
