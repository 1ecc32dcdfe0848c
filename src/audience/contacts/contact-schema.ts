/** Request and response schemas of contacts. */
import Type, { type Static } from 'typebox'
import { given } from '../../core/given.js'
import { readName } from '../../core/names.js'
import { Address, Id, Moment, MomentOrNull, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { MAX_CONTACTS } from '../audience-parts.js'
import { checkAttributes, checkEmail, checkText } from '../checks.js'
import type { Contact, Named } from './contact.js'
import { contactToApi } from './contact-events.js'
import type { Additions, ContactPatch, NewContactPatch } from './contacts.js'

export const AttributesSchema = Type.Record(Type.String(), Type.Unknown(), {
  description:
    'Custom attributes by name: at most 200 per contact, names of up to 100 characters, 32 KB of JSON in total, nested at ' +
    'most 8 levels.',
})

const NameOrNull = Type.Union([Type.String({ maxLength: 100 }), Type.Null()])
const Email = Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' })

const fields = {
  first_name: Type.Optional(NameOrNull),
  last_name: Type.Optional(NameOrNull),
  attributes: Type.Optional(AttributesSchema),
  subscribed: Type.Optional(Type.Boolean()),
}

/** Lists or tags that one upsert can add. */
const MAX_ADDED = 100

export const UpsertBody = Type.Object(
  {
    email: Email,
    ...fields,
    list_ids: Type.Optional(
      Type.Array(Type.String({ maxLength: 64, shownFormat: 'uuid' }), {
        maxItems: MAX_ADDED,
        description: 'Static lists to add the contact to, at most 100. It stays in its other lists.',
      }),
    ),
    tags: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
        maxItems: MAX_ADDED,
        description:
          'Names of tags to add, at most 100; case is ignored, missing tags are created. Other tags are kept.',
      }),
    ),
  },
  { additionalProperties: false, title: 'ContactUpsert' },
)

export const NewContactBody = Type.Object(
  {
    email: Email,
    ...fields,
    list_id: Type.Optional(
      Type.String({
        maxLength: 64,
        shownFormat: 'uuid',
        description: 'A static list to add the contact to.',
      }),
    ),
  },
  { additionalProperties: false, title: 'NewContact' },
)

export const ContactChangesBody = Type.Object(
  { email: Type.Optional(Email), ...fields },
  { additionalProperties: false, title: 'ContactChanges' },
)

export const ContactIds = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: MAX_CONTACTS,
  description: `Contact ids, at most ${MAX_CONTACTS.toLocaleString('en')}.`,
})

/** Limit on JSON values in a body of contact ids. */
export const CONTACT_IDS_VALUES = 2 * MAX_CONTACTS
/** Octets, for the same body. */
export const CONTACT_IDS_BODY = 100 * MAX_CONTACTS

const NamedSchema = Type.Object({ id: Id(), name: Type.String() }, { title: 'NamedReference' })

const contactFields = {
  id: Id(),
  email: Address({ description: 'Normalized: lower case, the domain as an A-label.' }),
  first_name: TextOrNull(),
  last_name: TextOrNull(),
  attributes: AttributesSchema,
  subscribed: Type.Boolean({
    description:
      'Set to false by an unsubscribe, a complaint or a manual suppression. Removing a manual suppression sets it back.',
  }),
  bounced: Type.Boolean({ description: 'The receiving server reported that the address does not exist.' }),
  bounced_at: MomentOrNull(),
  bounce_type: orNull(Type.Enum(['permanent', 'transient', 'undetermined'])),
  last_opened_at: MomentOrNull(),
  last_clicked_at: MomentOrNull(),
  is_sandbox: Type.Boolean(),
  created_at: Moment(),
  updated_at: Moment(),
}

export const ContactSchema = Type.Object(contactFields, { title: 'Contact' })

export const ContactDetailsSchema = Type.Object(
  { ...contactFields, lists: Type.Array(NamedSchema), tags: Type.Array(NamedSchema) },
  { title: 'ContactDetails' },
)

export const ContactWithListsSchema = Type.Object(
  { ...contactFields, lists: Type.Array(NamedSchema) },
  { title: 'ContactWithLists' },
)

/** @throws AppError validation_error */
export function readContactPatch(body: Static<typeof ContactChangesBody>): ContactPatch {
  const { email, attributes, subscribed } = body
  const firstName = checkText('first_name', body.first_name)
  const lastName = checkText('last_name', body.last_name)
  if (attributes) checkAttributes(attributes)
  return {
    ...(email === undefined ? {} : { email: checkEmail(email) }),
    ...given({ firstName, lastName, attributes, subscribed }),
  }
}

/** @throws AppError validation_error */
export function readNewContact(body: Omit<Static<typeof UpsertBody>, 'list_ids' | 'tags'>): NewContactPatch {
  return { ...readContactPatch(body), email: checkEmail(body.email) }
}

/** @throws AppError validation_error */
export function readUpsert({ list_ids: listIds = [], tags = [], ...body }: Static<typeof UpsertBody>): {
  readonly fields: NewContactPatch
  readonly additions: Additions
} {
  const names = tags.map((tag, at) => {
    return readName(tag, `tags.${at}`)
  })
  return { fields: readNewContact(body), additions: { listIds: [...new Set(listIds)], tags: names } }
}

export function shownContact(contact: Contact, isSandbox: boolean): Static<typeof ContactSchema> {
  const { attributes, ...shown } = contactToApi(contact, isSandbox)
  return { ...shown, attributes: { ...attributes } }
}

export function shownWith<Things extends Readonly<Record<string, readonly Named[]>>>(
  contact: Contact,
  isSandbox: boolean,
  things: Things,
): Static<typeof ContactSchema> & { [Name in keyof Things]: Named[] } {
  const copies = Object.fromEntries(Object.entries(things).map(([name, named]) => [name, [...named]]))
  return { ...shownContact(contact, isSandbox), ...(copies as { [Name in keyof Things]: Named[] }) }
}
