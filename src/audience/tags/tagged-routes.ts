/** Routes of the contacts with a tag. */
import Type from 'typebox'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import type { AudienceParts } from '../audience-parts.js'
import {
  bulkCounts,
  ContactIdsBody,
  contactIdsQuery,
  OptionalContactIdsBody,
  readContactIds,
} from '../contact-ids.js'
import { actingBy } from '../contacts/contact-routes.js'
import {
  CONTACT_IDS_BODY,
  CONTACT_IDS_VALUES,
  ContactSchema,
  shownContact,
} from '../contacts/contact-schema.js'
import { CONTACT_TAGS, listPairs } from '../pair-store.js'
import { changeTagged, requireTag } from './tags.js'
import { TagParams } from './tag-routes.js'

export function taggedRoutes(parts: AudienceParts): Route[] {
  const { database } = parts
  return [
    listRoute({
      method: 'GET',
      path: '/tags/:id/contacts',
      access: 'tags:read',
      operationId: 'listTaggedContacts',
      chapter: 'Tags',
      summary: 'List contacts with a tag, newest first.',
      params: TagParams,
      query: Type.Object(cursorQuery, { additionalProperties: false }),
      item: ContactSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }, page) {
        const tag = await requireTag(database.reader, workspaceId, params.id)
        const { slowReader } = database
        const found = await listPairs(slowReader, CONTACT_TAGS, tag.seq, tag.contactCount, page)
        return { ...found, items: found.items.map(one => shownContact(one, isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/tags/:id/contacts',
      access: 'tags:write',
      operationId: 'addTagToContacts',
      chapter: 'Tags',
      summary: 'Add a tag to contacts.',
      params: TagParams,
      body: ContactIdsBody,
      bodyLimit: CONTACT_IDS_BODY,
      bodyValues: CONTACT_IDS_VALUES,
      response: Type.Object({ added: Type.Integer(), ...bulkCounts }, { title: 'TagAdded' }),
      errors: ['not_found'],
      async handle({ principal, params, body }) {
        const { contact_ids: ids } = body
        const { done, skipped, notFound } = await changeTagged(
          parts,
          actingBy(principal),
          params.id,
          ids,
          'added',
        )
        return { added: done, skipped, not_found: notFound }
      },
    }),
    route({
      method: 'DELETE',
      path: '/tags/:id/contacts',
      access: 'tags:write',
      operationId: 'removeTagFromContacts',
      chapter: 'Tags',
      summary: 'Remove a tag from contacts.',
      params: TagParams,
      query: contactIdsQuery,
      body: OptionalContactIdsBody,
      isBodyOptional: true,
      example: { contact_ids: ['0192f3a4-5b6c-7d8e-9f01-23456789abcd'] },
      bodyLimit: CONTACT_IDS_BODY,
      bodyValues: CONTACT_IDS_VALUES,
      response: Type.Object({ removed: Type.Integer(), ...bulkCounts }, { title: 'TagRemoved' }),
      errors: ['not_found'],
      async handle({ principal, params, body, query }) {
        const ids = readContactIds(body, query)
        const acting = actingBy(principal)
        const { done, skipped, notFound } = await changeTagged(parts, acting, params.id, ids, 'removed')
        return { removed: done, skipped, not_found: notFound }
      },
    }),
  ]
}
