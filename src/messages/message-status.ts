/**
 * The state machine of a message: one table of what each transition does in each status.
 *
 * Read by `message-status-store.ts`, whose SQL is made of it, and by whoever wants to know beforehand. Pure. What is told to
 * the event log is told only where the table takes the transition:
 *
 *   transition     scheduled   cancelled  sent        delivered  opened   clicked  bounced  failed  suppressed  told
 *   began         sent        ·          ·           ·          ·        ·        ·        ·       ·           nothing
 *   cancelled     cancelled   ·          ·           ·          ·        ·        ·        ·       ·           nothing
 *   offered   ·           ·          =           =          =        =        =        =       =           email.sent
 *   delivered     ·           ·          delivered   =          =        =        =        ·       ·           email.delivered
 *   opened        ·           ·          opened      opened     =        =        =        =       =           email.opened
 *   inferred_open ·           ·          opened      opened     =        =        =        =       =           email.opened
 *   clicked       ·           ·          clicked     clicked    clicked  =        =        =       =           email.clicked
 *   bounced       ·           ·          bounced     bounced    =        =        =        =       =           email.bounced
 *   complained    ·           ·          =           =          =        =        =        =       =           email.complained
 *   unsubscribed  ·           ·          =           =          =        =        =        =       =           email.unsubscribed
 *   failed        failed      ·          failed      ·          ·        ·        ·        ·       ·           email.failed
 *   suppressed    suppressed  ·          suppressed  ·          ·        ·        ·        ·       ·           email.suppressed
 *   withheld      ·           ·          suppressed  ·          ·        ·        ·        ·       ·           email.suppressed
 *
 *   ·  is not taken: nothing changes, nothing is told     =  is taken: moments are set, it is told, the status stays
 *
 * What happens once for a message (delivered, inferred_open, bounced, complained) is known by its moment: the second time it is not taken.
 * A person who clicks has opened the mail even if no pixel was fetched: `message-history.ts` puts an `inferred_open` before each click,
 * which is taken only while the message has no open.
 * Openings and clicks are told each time, and set their moment the first time. `failed` and `suppressed` are final; what the
 * outside world says later of an attempt that was under way before is kept beside them. Accepted, queued and deferred all
 * read `sent`: whoever wants more reads attempts, next attempt and last reply. Openings and clicks by machines are no
 * transitions of a message: they are told to the log alone.
 */
import type { Event } from '../events/event.js'
import type { Permanence } from '../mail/outcome.js'

export const MESSAGE_STATUSES = [
  'scheduled',
  'cancelled',
  'sent',
  'delivered',
  'opened',
  'clicked',
  'bounced',
  'failed',
  'suppressed',
] as const
export type MessageStatus = (typeof MESSAGE_STATUSES)[number]

/** Why a recipient of a send was not mailed. */
export const SKIP_REASONS = ['suppressed', 'invalid', 'duplicate'] as const
export type SkipReason = (typeof SKIP_REASONS)[number]

export const TRANSITIONS = [
  /** Its time has come: it is claimed for its first attempt. */
  'started',
  /** Called back before that. */
  'cancelled',
  /** Offered to a remote server for the first time, whatever that server then said. */
  'offered',
  /** A remote server answered 2xx after the final dot. */
  'delivered',
  /** By a person. */
  'opened',
  /** Concluded from a click by a person; only where no open is known. */
  'inferred_open',
  'clicked',
  /** Refused for good, expired, or come back later. */
  'bounced',
  'complained',
  /** Of marketing mail; by the link or address that the message carries. */
  'unsubscribed',
  /** Could not be built, or was taken out of the queue by the operator. */
  'failed',
  /** The recipient was suppressed before any server was offered the message. */
  'suppressed',
  /** The same between two attempts. */
  'withheld',
] as const
export type TransitionKind = (typeof TRANSITIONS)[number]

export type Moment = 'sentAt' | 'deliveredAt' | 'openedAt' | 'clickedAt' | 'bouncedAt' | 'complainedAt'

/** What of a message the machine works on. */
export interface MessageState extends Readonly<Record<Moment, number | null>> {
  readonly status: MessageStatus
  readonly bounceType: Permanence | null
  readonly reason: SkipReason | null
}

interface Rule {
  /** Where it is taken, and the status that it leads to; the same one: it stays. */
  readonly next: Partial<Readonly<Record<MessageStatus, MessageStatus>>>
  /** Set where they are null. */
  readonly sets?: readonly Moment[]
  /** Not taken where this one is set. */
  readonly once?: Moment
  /** Set to null: what this moment says turns out not to have happened. */
  readonly clears?: Moment
  readonly reason?: SkipReason
  /** The message is not tried any more: its queue row goes. */
  readonly endsDelivery?: true
  readonly event?: Event['kind']
}

/** Where the status stays: the message left, or may have left, this appliance. */
const keepStatus = {
  sent: 'sent',
  delivered: 'delivered',
  opened: 'opened',
  clicked: 'clicked',
  bounced: 'bounced',
  failed: 'failed',
  suppressed: 'suppressed',
} as const

export const RULES: Readonly<Record<TransitionKind, Rule>> = {
  started: { next: { scheduled: 'sent' }, sets: ['sentAt'] },
  cancelled: { next: { scheduled: 'cancelled' }, endsDelivery: true },
  offered: { next: keepStatus, event: 'email.sent' },
  delivered: {
    // Late news of a message whose delivery was only known by its consequences so far.
    next: {
      sent: 'delivered',
      delivered: 'delivered',
      opened: 'opened',
      clicked: 'clicked',
      bounced: 'bounced',
    },
    sets: ['deliveredAt'],
    once: 'deliveredAt',
    event: 'email.delivered',
  },
  opened: {
    next: { ...keepStatus, sent: 'opened', delivered: 'opened' },
    sets: ['openedAt'],
    event: 'email.opened',
  },
  inferred_open: {
    next: { ...keepStatus, sent: 'opened', delivered: 'opened' },
    sets: ['openedAt'],
    once: 'openedAt',
    event: 'email.opened',
  },
  clicked: {
    next: { ...keepStatus, sent: 'clicked', delivered: 'clicked', opened: 'clicked' },
    sets: ['clickedAt', 'openedAt'],
    event: 'email.clicked',
  },
  bounced: {
    next: { ...keepStatus, sent: 'bounced', delivered: 'bounced' },
    sets: ['bouncedAt'],
    once: 'bouncedAt',
    endsDelivery: true,
    event: 'email.bounced',
  },
  complained: { next: keepStatus, sets: ['complainedAt'], once: 'complainedAt', event: 'email.complained' },
  unsubscribed: { next: keepStatus, event: 'email.unsubscribed' },
  failed: { next: { scheduled: 'failed', sent: 'failed' }, endsDelivery: true, event: 'email.failed' },
  suppressed: {
    next: { scheduled: 'suppressed', sent: 'suppressed' },
    clears: 'sentAt',
    reason: 'suppressed',
    endsDelivery: true,
    event: 'email.suppressed',
  },
  withheld: {
    next: { sent: 'suppressed' },
    reason: 'suppressed',
    endsDelivery: true,
    event: 'email.suppressed',
  },
}

/** @returns undefined where it changes nothing and nothing is to be told */
export function stateAfter(
  state: MessageState,
  kind: TransitionKind,
  at: number,
  bounceType: Permanence = 'undetermined',
): MessageState | undefined {
  const { next, sets = [], once, clears, reason } = RULES[kind]
  const status = next[state.status]
  if (status === undefined || (once !== undefined && state[once] !== null)) return undefined
  const moments = Object.fromEntries(sets.map(moment => [moment, state[moment] ?? at]))
  return {
    ...state,
    ...moments,
    ...(clears === undefined ? {} : { [clears]: null }),
    status,
    reason: reason ?? state.reason,
    bounceType: kind === 'bounced' ? bounceType : state.bounceType,
  }
}
