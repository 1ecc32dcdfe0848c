/** The ids of a request that names many contacts, in its body or, for clients whose DELETE has none, in its query. */
import Type from 'typebox'
import { MOST_CONTACTS } from './audience-parts.js'
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
      Type.String({ maxLength: 10_000, description: 'Instead of a body: ids with commas between them.' }),
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
    throw refusal('contact_ids', 'contact_ids are required, in the body or in the query')
  if (body.contact_ids) return body.contact_ids
  const ids = (query.contact_ids ?? '')
    .split(',')
    .map(id => id.trim())
    .filter(Boolean)
  if (ids.length > MOST_CONTACTS)
    throw refusal('contact_ids', `contact_ids must have at most ${MOST_CONTACTS} entries`)
  return ids
}

/** What is told of contacts for which nothing changed, in answers to works on many. */
export const bulkCounts = {
  skipped: Type.Integer({ description: 'For which it was so already.' }),
  not_found: Type.Integer(),
}
