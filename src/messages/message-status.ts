/**
 * The state machine of a message: what each transition does in each status.
 *
 * `message-status-store.ts` generates its SQL from `RULES`. An event is written only if the transition applies:
 *
 *   transition    scheduled   cancelled  sent        delivered  opened   clicked  bounced  failed  suppressed  event
 *   started       sent        ·          ·           ·          ·        ·        ·        ·       ·           none
 *   cancelled     cancelled   ·          ·           ·          ·        ·        ·        ·       ·           none
 *   offered       ·           ·          =           =          =        =        =        =       =           email.sent
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
 *   presumed      ·           ·          ·           ·          =        =        ·        ·       ·           none
 *
 *   ·  does not apply: no change, no event     =  applies: moments are set, the event is written, the status stays
 *
 * `delivered`, `presumed`, `inferred_open`, `bounced` and `complained` apply once per message, known by their moment. Opens and
 * clicks apply each time and set their moment the first time. `failed` and `suppressed` are final; later news of an
 * earlier attempt is recorded beside them. Accepted, queued and deferred messages are all `sent`. Opens and clicks by
 * machines are events but not transitions.
 */
import { CONSENT_REASONS, type ConsentReason } from '../audience/contacts/consent.js'
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

/** Why a recipient was skipped. */
export const SKIP_REASONS = ['suppressed', 'invalid', 'duplicate', ...CONSENT_REASONS] as const
export type SkipReason = (typeof SKIP_REASONS)[number]

/** Why a queued message is not sent after all. */
export type WithheldReason = 'suppressed' | ConsentReason

export const TRANSITIONS = [
  /** A scheduled message is claimed for its first attempt. */
  'started',
  /** Cancelled before that. */
  'cancelled',
  /** First offered to a remote server, whatever it replied. */
  'offered',
  /** A server replied 2xx to the final dot. */
  'delivered',
  /** Opened by a person. */
  'opened',
  /** Inferred from a click by a person on a message without an open. */
  'inferred_open',
  'clicked',
  /** Rejected permanently, expired, or returned later. */
  'bounced',
  'complained',
  /** By the link or address in the message. */
  'unsubscribed',
  /** Impossible to send, or deleted from the queue. */
  'failed',
  /** The recipient was suppressed, or took back the consent, before the message was offered to a server. */
  'suppressed',
  /** The same between two attempts. */
  'withheld',
  /** Opened or clicked, but leaves the queue without a reply that confirms its delivery. */
  'presumed',
] as const
export type TransitionKind = (typeof TRANSITIONS)[number]

export type Moment = 'sentAt' | 'deliveredAt' | 'openedAt' | 'clickedAt' | 'bouncedAt' | 'complainedAt'

export interface MessageState extends Readonly<Record<Moment, number | null>> {
  readonly status: MessageStatus
  readonly bounceType: Permanence | null
  readonly reason: SkipReason | null
}

interface Rule {
  /** Next status by current status; the transition does not apply in others. */
  readonly next: Partial<Readonly<Record<MessageStatus, MessageStatus>>>
  /** Set if null. */
  readonly sets?: readonly Moment[]
  /** Does not apply if this moment is set. */
  readonly once?: Moment
  /** Set to null: it did not happen after all. */
  readonly clears?: Moment
  /** Unless the transition states another. */
  readonly reason?: SkipReason
  /** Deletes the queue row. */
  readonly endsDelivery?: true
  readonly event?: Event['kind']
}

/** Keeps every status in which the message may have been sent. */
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
    // May come late, after an open or bounce.
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
  presumed: {
    next: { opened: 'opened', clicked: 'clicked' },
    sets: ['deliveredAt'],
    once: 'deliveredAt',
    endsDelivery: true,
  },
}

/** @returns undefined if the transition does not apply */
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
