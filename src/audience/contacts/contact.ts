/** Contacts: the people of an audience, identified by address. Holds no logic. */
import type { Permanence } from '../../mail/outcome.js'

export type Attributes = Readonly<Record<string, unknown>>

/** Fields that requests can set. */
export interface ContactFields {
  /** Normalized (`normalizedAddress`); unique in an audience. */
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly attributes: Attributes
  readonly subscribed: boolean
}

export interface Contact extends ContactFields {
  /** Internal number; key of list members and tags. */
  readonly seq: number
  /** UUIDv7. */
  readonly id: string
  /** Unsubscribed only because its address or domain is suppressed; removing that suppression subscribes it again. */
  readonly suspended: boolean
  /** The receiving server reported that the address does not exist. */
  readonly bounced: boolean
  readonly bouncedAt: number | null
  readonly bounceType: Permanence | null
  readonly lastOpenedAt: number | null
  readonly lastClickedAt: number | null
  readonly createdAt: number
  readonly updatedAt: number
}

export type NewContact = ContactFields &
  Pick<Contact, 'id' | 'createdAt'> &
  Partial<Pick<Contact, 'suspended'>>

/** A list or tag. */
export interface Named {
  readonly id: string
  readonly name: string
}
