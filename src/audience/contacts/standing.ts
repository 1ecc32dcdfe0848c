/**
 * What a contact's fields are, given the suppressions of its address. Pure.
 *
 *   suppression                                        contact
 *   unsubscribe, complaint about a message (opt-outs)  `subscribed` false, and stays so when the entry is removed
 *   another one, or one of the whole domain            `subscribed` false, `suspended` if it was subscribed
 *   hard bounce                                        `bounced`; `subscribed` stays
 *   none, any more                                     a suspended contact is subscribed again
 */
import { isOptOut } from '../../deliverability/suppressions/suppressions.js'
import type { AddressSuppressions } from '../../deliverability/suppressions/suppression-store.js'
import type { Contact } from './contact.js'

export type Subscription = Pick<Contact, 'subscribed' | 'suspended'>
export type Fate = Subscription & Pick<Contact, 'bounced' | 'bouncedAt' | 'bounceType'>

export const OPTED_OUT: Subscription = { subscribed: false, suspended: false }

export const NOT_BOUNCED = { bounced: false, bouncedAt: null, bounceType: null } as const

/** @param wanted subscribed or suspended: the contact takes mail as far as it is concerned */
export function subscriptionUnder(
  wanted: Subscription,
  standing: AddressSuppressions | undefined,
): Subscription {
  if (!(wanted.subscribed || wanted.suspended)) return OPTED_OUT
  if (standing?.own && isOptOut(standing.own)) return OPTED_OUT
  const isHeld = holderOf(standing) !== undefined
  return { subscribed: !isHeld, suspended: isHeld }
}

/** The reason that keeps a contact from being subscribed. */
export function holderOf(standing: AddressSuppressions | undefined): string | undefined {
  if (standing?.own && standing.own.reason !== 'hard_bounce') return standing.own.reason
  return standing?.domain && 'the whole domain'
}

/** With what the address's own entry says of bounces; where it says nothing, `before` stays. */
export function fateUnder(before: Fate, standing: AddressSuppressions | undefined): Fate {
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
