/** Routes of list members. */
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
import { LIST_MEMBERS, listPairs } from '../pair-store.js'
import { patience } from '../scan-store.js'
import { listMatching } from '../segments/audience-query-store.js'
import { readConditions } from '../segments/read-conditions.js'
import { ListParams } from './list-routes.js'
import { changeMembers, requireList } from './lists.js'

export function memberRoutes(parts: AudienceParts): Route[] {
  const { database, clock } = parts
  return [
    listRoute({
      method: 'GET',
      path: '/lists/:id/members',
      access: 'lists:read',
      operationId: 'listListMembers',
      chapter: 'Lists',
      summary: 'List the members of a list, newest first.',
      params: ListParams,
      query: Type.Object(cursorQuery, { additionalProperties: false }),
      item: ContactSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }, page) {
        const list = await requireList(database.reader, workspaceId, params.id)
        const { slowReader } = database
        const found = list.conditions
          ? await listMatching(
              slowReader,
              readConditions(list.conditions),
              { workspaceId, now: clock.now() },
              page,
              patience(clock),
            )
          : await listPairs(slowReader, LIST_MEMBERS, list.seq, list.memberCount, page)
        return { ...found, items: found.items.map(one => shownContact(one, isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/lists/:id/members',
      access: 'lists:write',
      operationId: 'addListMembers',
      chapter: 'Lists',
      summary: 'Add contacts to a list.',
      description: 'Returns 409 for a dynamic list, whose members follow from its conditions.',
      params: ListParams,
      body: ContactIdsBody,
      bodyLimit: CONTACT_IDS_BODY,
      bodyValues: CONTACT_IDS_VALUES,
      response: Type.Object({ added: Type.Integer(), ...bulkCounts }, { title: 'MembersAdded' }),
      errors: ['not_found', 'conflict'],
      async handle({ principal, params, body }) {
        const { done, skipped, notFound } = await changeMembers(
          parts,
          actingBy(principal),
          params.id,
          body.contact_ids,
          'added',
        )
        return { added: done, skipped, not_found: notFound }
      },
    }),
    route({
      method: 'DELETE',
      path: '/lists/:id/members',
      access: 'lists:write',
      operationId: 'removeListMembers',
      chapter: 'Lists',
      summary: 'Remove contacts from a list.',
      description:
        'The contacts are kept. Returns 409 for a dynamic list, whose members follow from its conditions.',
      params: ListParams,
      query: contactIdsQuery,
      body: OptionalContactIdsBody,
      isBodyOptional: true,
      example: { contact_ids: ['0192f3a4-5b6c-7d8e-9f01-23456789abcd'] },
      bodyLimit: CONTACT_IDS_BODY,
      bodyValues: CONTACT_IDS_VALUES,
      response: Type.Object({ removed: Type.Integer(), ...bulkCounts }, { title: 'MembersRemoved' }),
      errors: ['not_found', 'conflict'],
      async handle({ principal, params, body, query }) {
        const ids = readContactIds(body, query)
        const acting = actingBy(principal)
        const { done, skipped, notFound } = await changeMembers(parts, acting, params.id, ids, 'removed')
        return { removed: done, skipped, not_found: notFound }
      },
    }),
  ]
}
