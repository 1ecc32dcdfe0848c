/** Routes of single contacts, and of the list of them. */
import Type from 'typebox'
import type { Queries } from '../../db/database.js'
import { Done } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import type { Principal } from '../../http/principal.js'
import { listRoute, Reply, route, type Route } from '../../http/route.js'
import type { Acting, AudienceParts } from '../audience-parts.js'
import { CONTACT_TAGS, LIST_MEMBERS, thingsOf } from '../pair-store.js'
import { patience } from '../scan-store.js'
import type { Contact } from './contact.js'
import { listFilters, readListFilter } from './contact-filter.js'
import { listContacts } from './contact-page-store.js'
import {
  ContactChangesBody,
  ContactDetailsSchema,
  ContactSchema,
  NewContactBody,
  readContactPatch,
  readNewContact,
  readUpsert,
  shownContact,
  shownWith,
  UpsertBody,
} from './contact-schema.js'
import { changeContact, createContact, removeContacts, requireContact, upsertContact } from './contacts.js'

export const ContactParams = Type.Object({ id: Type.String() })

const IS_SUPPRESSED =
  'An address that is suppressed begins unsubscribed. Who says `subscribed: true` lets an unsubscribe of the address go; a ' +
  'suppression for another reason stays.'

/** A request's key acts for itself. */
export function actingBy({ workspaceId, isSandbox }: Principal): Acting {
  return { workspaceId, isSandbox, source: 'api' }
}

export function contactRoutes(parts: AudienceParts): Route[] {
  const { database, clock } = parts
  return [
    listRoute({
      method: 'GET',
      path: '/contacts',
      access: 'contacts:read',
      operationId: 'listContacts',
      chapter: 'Contacts',
      summary: 'List contacts.',
      description:
        'All filters given must match. Reading page after page with `after` shows each contact once, unless its place in the order changes ' +
        'meanwhile: with `sort=updated_at` a contact that is changed is shown again. With filters other than `subscribed` and `bounced`, ' +
        'a first page that takes longer than five seconds to count is a 503.',
      query: Type.Object(
        {
          ...cursorQuery,
          search: Type.Optional(
            Type.String({
              maxLength: 200,
              description:
                'Words, each of which stands somewhere in the address, first or last name, whatever case and accents.',
            }),
          ),
          subscribed: Type.Optional(Type.Boolean()),
          bounced: Type.Optional(Type.Boolean()),
          ...listFilters,
        },
        { additionalProperties: false },
      ),
      item: ContactSchema,
      errors: ['not_found'],
      async handle({ principal, query }, page) {
        const filter = await readListFilter(parts, principal.workspaceId, query)
        const found = await listContacts(
          database.slowReader,
          principal.workspaceId,
          filter,
          page,
          patience(clock),
        )
        return { ...found, items: found.items.map(one => shownContact(one, principal.isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/contacts',
      access: 'contacts:write',
      operationId: 'createContact',
      chapter: 'Contacts',
      summary: 'Make a contact, and put it into a list.',
      description: `Addresses compare without case. ${IS_SUPPRESSED}`,
      body: NewContactBody,
      response: ContactDetailsSchema,
      status: 201,
      errors: ['duplicate', 'not_found', 'conflict'],
      handle: ({ principal, body: { list_id: listId, ...body } }) => {
        const fields = readNewContact(body)
        return database.write(async tx => {
          const contact = await createContact(parts, tx, actingBy(principal), fields, listId)
          return withThings(tx.db, contact, principal)
        })
      },
    }),
    route({
      method: 'PUT',
      path: '/contacts',
      access: 'contacts:write',
      operationId: 'upsertContact',
      chapter: 'Contacts',
      summary: 'Create or update a contact.',
      description:
        'Of an existing contact only the fields given change; attributes are merged. `list_ids` and `tags` add and never remove. All of ' +
        `it happens or none. ${IS_SUPPRESSED}`,
      body: UpsertBody,
      response: ContactDetailsSchema,
      otherAnswers: { 201: ContactDetailsSchema },
      errors: ['not_found', 'conflict', 'limit_reached'],
      handle: ({ principal, body }) => {
        const { fields, additions } = readUpsert(body)
        return database.write(async tx => {
          const { contact, result } = await upsertContact(parts, tx, actingBy(principal), fields, additions)
          return new Reply(result === 'created' ? 201 : 200, await withThings(tx.db, contact, principal))
        })
      },
    }),
    route({
      method: 'GET',
      path: '/contacts/:id',
      access: 'contacts:read',
      operationId: 'getContact',
      chapter: 'Contacts',
      summary: 'One contact, with its lists and tags.',
      params: ContactParams,
      response: ContactDetailsSchema,
      errors: ['contact_not_found'],
      handle: async ({ principal, params }) => {
        const contact = await requireContact(database.reader, principal.workspaceId, params.id)
        return withThings(database.reader, contact, principal)
      },
    }),
    route({
      method: 'PATCH',
      path: '/contacts/:id',
      access: 'contacts:write',
      operationId: 'updateContact',
      chapter: 'Contacts',
      summary: 'Change fields of a contact.',
      description:
        'Only the fields given change. null clears a name. Attributes are merged into those that there are; one that is null is ' +
        'taken away. `subscribed: true` lets an unsubscribe of the address go; under any other suppression but a hard bounce it is ' +
        'a 409, until the suppression is removed.',
      params: ContactParams,
      body: ContactChangesBody,
      response: ContactDetailsSchema,
      errors: ['contact_not_found', 'duplicate', 'conflict'],
      handle: ({ principal, params, body }) => {
        const patch = readContactPatch(body)
        return database.write(async tx => {
          const contact = await changeContact(parts, tx, actingBy(principal), params.id, patch)
          return withThings(tx.db, contact, principal)
        })
      },
    }),
    route({
      method: 'DELETE',
      path: '/contacts/:id',
      access: 'contacts:write',
      operationId: 'deleteContact',
      chapter: 'Contacts',
      summary: 'Delete a contact for good.',
      description: 'What it was sent, and what it bought, stays; so does a suppression of its address.',
      params: ContactParams,
      response: Done,
      errors: ['contact_not_found'],
      handle: ({ principal, params }) =>
        database.write(async tx => {
          const contact = await requireContact(tx.db, principal.workspaceId, params.id)
          await removeContacts(parts, tx, actingBy(principal), [contact])
          return { success: true as const }
        }),
    }),
  ]
}

async function withThings(db: Queries, contact: Contact, { isSandbox }: Principal) {
  const { seq } = contact
  const lists = (await thingsOf(db, LIST_MEMBERS, [seq])).get(seq) ?? []
  const tags = (await thingsOf(db, CONTACT_TAGS, [seq])).get(seq) ?? []
  return shownWith(contact, isSandbox, { lists, tags })
}
