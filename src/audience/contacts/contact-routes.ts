/** Contact routes: list, create, upsert, read, update, delete. */
import Type from 'typebox'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { DONE, Done } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { etagOf, Tagged } from '../../http/preconditions.js'
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
  'A suppressed address starts unsubscribed. `subscribed: true` revokes an earlier unsubscribe of the address but no other suppression.'

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
        'All filters must match. Paging with `after` returns each contact once, unless its position in the order changes ' +
        'meanwhile: with `sort=updated_at` a contact updated between pages appears again. With filters other than `subscribed` and `bounced`, ' +
        'a first page that takes over five seconds to count returns 503.',
      query: Type.Object(
        {
          ...cursorQuery,
          search: Type.Optional(
            Type.String({
              maxLength: 200,
              description:
                'Words; each must occur in the address, first or last name. Case and accents are ignored.',
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
      summary: 'Create a contact.',
      description: `Optionally adds it to a static list. Addresses are case-insensitive. ${IS_SUPPRESSED}`,
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
        'For an existing contact, only the given fields change and attributes are merged. `list_ids` and `tags` add and never remove. The ' +
        `upsert is atomic. ${IS_SUPPRESSED}`,
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
      hasEtag: true,
      chapter: 'Contacts',
      summary: 'Get a contact.',
      description:
        'The `ETag` covers everything shown. With `If-Match`, only the fields that an update can change count, not lists, tags, bounces and times.',
      params: ContactParams,
      response: ContactDetailsSchema,
      errors: ['contact_not_found'],
      handle: ({ principal, params }) =>
        snapshot(database.reader, async db => {
          const contact = await requireContact(db, principal.workspaceId, params.id)
          return new Tagged(await withThings(db, contact, principal), contactEtag(contact))
        }),
    }),
    route({
      method: 'PATCH',
      path: '/contacts/:id',
      access: 'contacts:write',
      operationId: 'updateContact',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Contacts',
      summary: 'Update a contact.',
      description:
        'Only the given fields change; null clears a name. Attributes are merged; null removes one. `subscribed: true` revokes an ' +
        'unsubscribe of the address. If the address has another suppression (hard bounces excepted), the request returns 409 until that is removed.',
      params: ContactParams,
      body: ContactChangesBody,
      response: ContactDetailsSchema,
      errors: ['contact_not_found', 'duplicate', 'conflict'],
      handle: ({ principal, params, body, precondition }) => {
        const patch = readContactPatch(body)
        return database.write(async tx => {
          if (precondition)
            precondition.check(contactEtag(await requireContact(tx.db, principal.workspaceId, params.id)))
          const contact = await changeContact(parts, tx, actingBy(principal), params.id, patch)
          return new Tagged(await withThings(tx.db, contact, principal), contactEtag(contact))
        })
      },
    }),
    route({
      method: 'DELETE',
      path: '/contacts/:id',
      access: 'contacts:write',
      operationId: 'deleteContact',
      checksEtag: true,
      chapter: 'Contacts',
      summary: 'Permanently delete a contact.',
      description: 'Its messages and purchases are kept, as is any suppression of its address.',
      params: ContactParams,
      response: Done,
      errors: ['contact_not_found'],
      handle: ({ principal, params, precondition }) =>
        database.write(async tx => {
          const contact = await requireContact(tx.db, principal.workspaceId, params.id)
          precondition?.check(contactEtag(contact))
          await removeContacts(parts, tx, actingBy(principal), [contact])
          return DONE
        }),
    }),
  ]
}

function contactEtag({ id, email, firstName, lastName, attributes, subscribed }: Contact): string {
  return etagOf(id, email, firstName, lastName, attributes, subscribed)
}

async function withThings(db: Queries, contact: Contact, { isSandbox }: Principal) {
  const { seq } = contact
  const lists = (await thingsOf(db, LIST_MEMBERS, [seq])).get(seq) ?? []
  const tags = (await thingsOf(db, CONTACT_TAGS, [seq])).get(seq) ?? []
  return shownWith(contact, isSandbox, { lists, tags })
}
