/**
 * Derives a contact's subscription and bounce fields from the suppressions of its address. Pure.
 *
 *   suppression                                        contact
 *   unsubscribe, complaint about a message (opt-outs)  `subscribed` false, also after the entry is removed
 *   any other reason, or the whole domain              `subscribed` false, `suspended` if it was subscribed
 *   hard bounce                                        `bounced`; `subscribed` unchanged
 *   removed                                            a suspended contact is subscribed again
 */
import { isOptOut } from '../../deliverability/suppressions/suppressions.js'
import type { AddressSuppressions } from '../../deliverability/suppressions/suppression-store.js'
import type { Contact } from './contact.js'

export type Subscription = Pick<Contact, 'subscribed' | 'suspended'>
export type MailStatus = Subscription & Pick<Contact, 'bounced' | 'bouncedAt' | 'bounceType'>

export const OPTED_OUT: Subscription = { subscribed: false, suspended: false }

export const NOT_BOUNCED = { bounced: false, bouncedAt: null, bounceType: null } as const

/** @param wanted subscribed or suspended: the contact itself has not opted out */
export function subscriptionUnder(
  wanted: Subscription,
  standing: AddressSuppressions | undefined,
): Subscription {
  if (!(wanted.subscribed || wanted.suspended)) return OPTED_OUT
  if (standing?.own && isOptOut(standing.own)) return OPTED_OUT
  const isHeld = holderOf(standing) !== undefined
  return { subscribed: !isHeld, suspended: isHeld }
}

/** The suppression reason that keeps a contact unsubscribed. */
export function holderOf(standing: AddressSuppressions | undefined): string | undefined {
  if (standing?.own && standing.own.reason !== 'hard_bounce') return standing.own.reason
  return standing?.domain && 'the whole domain'
}

/** Applies suppressions; without a hard bounce entry the bounce fields of `before` stay. */
export function mailStatusUnder(before: MailStatus, standing: AddressSuppressions | undefined): MailStatus {
  const { bounced, bouncedAt, bounceType } = before
  const isHardBounce = !bounced && standing?.own?.reason === 'hard_bounce'
  return {
    ...subscriptionUnder(before, standing),
    ...(isHardBounce ? bouncedSince(standing.own.createdAt) : { bounced, bouncedAt, bounceType }),
  }
}

export function bouncedSince(at: number): Pick<Contact, 'bounced' | 'bouncedAt' | 'bounceType'> {
  return { bounced: true, bouncedAt: at, bounceType: 'permanent' }
}
