/** What a contact is: a person of an audience, by address. Holds no logic. */
import type { Permanence } from '../../mail/outcome.js'

export type Attributes = Readonly<Record<string, unknown>>

/** What can be said of a contact from outside. */
export interface ContactFields {
  /** As `normalizedAddress` writes it; one in an audience. */
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly attributes: Attributes
  readonly subscribed: boolean
}

export interface Contact extends ContactFields {
  /** Its number, by which lists and tags know it. */
  readonly seq: number
  /** UUIDv7. */
  readonly id: string
  /** Not subscribed only because its address or domain is suppressed: subscribed again when that suppression is removed. */
  readonly suspended: boolean
  /** The address does not exist, as its server has said. */
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

/** A thing that a contact is in or has: a list, a tag. */
export interface Named {
  readonly id: string
  readonly name: string
}
