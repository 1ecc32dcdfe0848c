/** The contact ids of a bulk request: in its body, or in the query for clients whose DELETE cannot have a body. */
import Type from 'typebox'
import { MAX_CONTACTS } from './audience-parts.js'
import { refusal } from './checks.js'
import { ContactIds } from './contacts/contact-schema.js'

export const ContactIdsBody = Type.Object(
  { contact_ids: ContactIds },
  { additionalProperties: false, title: 'ContactSelection' },
)

export const OptionalContactIdsBody = Type.Object(
  { contact_ids: Type.Optional(ContactIds) },
  { additionalProperties: false, title: 'OptionalContactSelection' },
)

export const contactIdsQuery = Type.Object(
  {
    contact_ids: Type.Optional(
      Type.String({ maxLength: 10_000, description: 'Comma-separated ids, instead of a body.' }),
    ),
  },
  { additionalProperties: false },
)

/** @throws AppError validation_error */
export function readContactIds(
  body: { readonly contact_ids?: readonly string[] },
  query: { readonly contact_ids?: string },
): readonly string[] {
  if ((body.contact_ids === undefined) === (query.contact_ids === undefined))
    throw refusal('contact_ids', 'contact_ids are required, in the body or the query')
  if (body.contact_ids) return body.contact_ids
  const ids = (query.contact_ids ?? '')
    .split(',')
    .map(id => id.trim())
    .filter(Boolean)
  if (ids.length > MAX_CONTACTS)
    throw refusal('contact_ids', `contact_ids must have at most ${MAX_CONTACTS} entries`)
  return ids
}

/** Response fields of bulk requests for contacts that did not change. */
export const bulkCounts = {
  skipped: Type.Integer({ description: 'Contacts already in the requested state.' }),
  not_found: Type.Integer(),
}
