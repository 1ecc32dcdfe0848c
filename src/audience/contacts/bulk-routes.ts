/** Bulk contact routes: duplicates, batch upsert, bulk delete, delete all, restore. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { snapshot } from '../../db/snapshot.js'
import { recordActivity } from '../../events/activity-store.js'
import { IdOrNull, Moment } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { RESTORABLE_MS, type AudienceParts } from '../audience-parts.js'
import { forContacts } from '../bulk.js'
import { refusal } from '../checks.js'
import { requireList } from '../lists/lists.js'
import { LIST_MEMBERS, thingsOf } from '../pair-store.js'
import { actingBy } from './contact-routes.js'
import {
  CONTACT_IDS_BODY,
  CONTACT_IDS_VALUES,
  ContactIds,
  ContactWithListsSchema,
  shownWith,
  UpsertBody,
} from './contact-schema.js'
import { removeContacts } from './contacts.js'
import { listDuplicates } from './contact-page-store.js'
import { removeRestorably, type ContactSweeps } from './sweeps.js'
import { upsertBatch, UPSERTS } from './upsert-batch.js'

/** Must precede `/contacts/:id` in the route table. */
export function bulkContactRoutes(parts: AudienceParts, sweeps: ContactSweeps): Route[] {
  return [
    duplicatesRoute(parts),
    batchRoute(parts),
    bulkDeleteRoute(parts),
    deleteAllRoute(sweeps),
    restoreRoute(sweeps),
  ]
}

function duplicatesRoute({ database }: AudienceParts): Route {
  return listRoute({
    method: 'GET',
    path: '/contacts/duplicates',
    access: 'contacts:read',
    operationId: 'listDuplicateContacts',
    chapter: 'Contacts',
    summary: 'List contacts in several lists.',
    description: 'Newest first, each with its lists.',
    query: Type.Object(
      {
        ...cursorQuery,
        list_id: Type.Optional(
          Type.String({ maxLength: 64, shownFormat: 'uuid', description: 'Only members of this list.' }),
        ),
      },
      { additionalProperties: false },
    ),
    item: ContactWithListsSchema,
    errors: ['not_found'],
    async handle({ principal: { workspaceId, isSandbox }, query: { list_id: listId } }, page) {
      const list =
        listId === undefined ? undefined : await requireList(database.reader, workspaceId, listId, 'list_id')
      return snapshot(database.slowReader, async db => {
        const found = await listDuplicates(db, workspaceId, list?.seq, page)
        const { items } = found
        const lists = await thingsOf(
          db,
          LIST_MEMBERS,
          items.map(({ seq }) => seq),
        )
        return {
          ...found,
          items: items.map(one => shownWith(one, isSandbox, { lists: lists.get(one.seq) ?? [] })),
        }
      })
    },
  })
}

const UpsertResultSchema = Type.Object(
  {
    index: Type.Integer({ description: 'Position in `contacts`, from 0.' }),
    email: Type.String(),
    status: Type.Enum(['created', 'updated', 'unchanged', 'rejected']),
    contact_id: IdOrNull({ description: 'Null if rejected.' }),
    error: Type.Optional(
      Type.Object(
        {
          code: Type.String(),
          message: Type.String(),
          path: Type.Optional(Type.String({ description: 'The invalid field, e.g. `contacts.3.email`.' })),
        },
        { title: 'ContactUpsertError' },
      ),
    ),
  },
  { title: 'ContactUpsertResult' },
)

function batchRoute(parts: AudienceParts): Route {
  return route({
    method: 'POST',
    path: '/contacts/batch',
    access: 'contacts:write',
    operationId: 'upsertContacts',
    chapter: 'Contacts',
    summary: 'Create or update many contacts.',
    description:
      'Each contact is upserted as by `PUT /contacts`, in the order given, and succeeds or fails independently: a rejected one has an ' +
      '`error`, the others are stored. A body that does not match the schema returns 400 and stores nothing. The response is sent after ' +
      'all writes are committed. After a 5xx some contacts may be stored; the request is safe to repeat.',
    body: Type.Object(
      { contacts: Type.Array(UpsertBody, { minItems: 1, maxItems: UPSERTS.most }) },
      { additionalProperties: false, title: 'ContactBatch' },
    ),
    bodyLimit: UPSERTS.octets,
    bodyValues: UPSERTS.values,
    response: Type.Object(
      {
        created: Type.Integer(),
        updated: Type.Integer(),
        unchanged: Type.Integer(),
        rejected: Type.Integer(),
        results: Type.Array(UpsertResultSchema, { description: 'One for each contact, in the same order.' }),
      },
      { title: 'ContactBatchResult' },
    ),
    handle: ({ principal, body }) => upsertBatch(parts, actingBy(principal), body.contacts),
  })
}

function bulkDeleteRoute(parts: AudienceParts): Route {
  return route({
    method: 'POST',
    path: '/contacts/bulk-delete',
    access: 'contacts:write',
    operationId: 'deleteContacts',
    chapter: 'Contacts',
    summary: 'Delete contacts.',
    description:
      'Permanently, unless `restorable` is true: then `POST /contacts/restore` brings them back for 30 days, with their lists and tags.',
    body: Type.Object(
      {
        contact_ids: ContactIds,
        restorable: Type.Optional(
          Type.Boolean({ description: 'Whether they can be restored. Default false.' }),
        ),
      },
      { additionalProperties: false, title: 'DeleteContacts' },
    ),
    bodyLimit: CONTACT_IDS_BODY,
    bodyValues: CONTACT_IDS_VALUES,
    response: Type.Object(
      { deleted: Type.Integer(), not_found: Type.Integer() },
      { title: 'ContactsDeleted' },
    ),
    async handle({ principal, body }) {
      const { workspaceId } = principal
      const remove = body.restorable === true ? removeRestorably : removeContacts
      const { done, notFound } = await forContacts(
        parts,
        workspaceId,
        body.contact_ids,
        async (tx, contacts) => {
          await remove(parts, tx, actingBy(principal), contacts)
          return contacts.length
        },
      )
      if (done > 0)
        await parts.database.write(tx =>
          recordActivity(tx, principal, parts.clock.now(), {
            action: 'contacts.deleted',
            subject: `${done} contacts`,
            details: { contacts: done },
          }),
        )
      return { deleted: done, not_found: notFound }
    },
  })
}

function deleteAllRoute(sweeps: ContactSweeps): Route {
  return route({
    method: 'POST',
    path: '/contacts/delete-all',
    access: 'contacts:write',
    operationId: 'deleteAllContacts',
    chapter: 'Contacts',
    summary: 'Delete all contacts.',
    description:
      'Deleted contacts can be restored for 30 days. The response is sent when all are deleted, about a minute for a million. The deletion ' +
      'continues even if the client disconnects. Contacts created meanwhile are kept.',
    body: Type.Object(
      { confirm: Type.Optional(Type.Boolean({ description: 'Must be true.' })) },
      { additionalProperties: false, title: 'DeleteAllContacts' },
    ),
    isBodyOptional: true,
    example: { confirm: true },
    response: Type.Object(
      { deleted: Type.Integer(), restorable_until: Moment() },
      { title: 'AllContactsDeleted' },
    ),
    errors: ['confirmation_required', 'conflict'],
    async handle({ principal, body }) {
      if (body.confirm !== true)
        throw new AppError('confirmation_required', 'confirm must be true; nothing was deleted', {
          path: 'confirm',
        })
      const { changed, begunAt } = await sweeps.deleteAll(actingBy(principal), principal.actor)
      return { deleted: changed, restorable_until: isoTime(begunAt + RESTORABLE_MS) }
    },
  })
}

function restoreRoute(sweeps: ContactSweeps): Route {
  return route({
    method: 'POST',
    path: '/contacts/restore',
    access: 'contacts:write',
    operationId: 'restoreContacts',
    chapter: 'Contacts',
    summary: 'Restore deleted contacts.',
    description:
      'Restores contacts removed by `delete-all`, or by `bulk-delete` with `restorable`, in the last 30 days, with their lists and tags. ' +
      'Contacts whose address is in use again ' +
      'are skipped, as are ids that match no restorable contact. Contacts suppressed since then come back unsubscribed.',
    body: Type.Object(
      { contact_ids: Type.Optional(ContactIds), all: Type.Optional(Type.Boolean()) },
      { additionalProperties: false, title: 'RestoreContacts' },
    ),
    bodyLimit: CONTACT_IDS_BODY,
    bodyValues: CONTACT_IDS_VALUES,
    example: { all: true },
    response: Type.Object(
      { restored: Type.Integer(), skipped: Type.Integer() },
      { title: 'ContactsRestored' },
    ),
    errors: ['conflict'],
    async handle({ principal, body: { contact_ids: ids, all } }) {
      if ((ids === undefined) === (all !== true))
        throw refusal('contact_ids', 'set either contact_ids or all: true')
      if (ids) return sweeps.restore(actingBy(principal), ids)
      const { changed, skipped } = await sweeps.restoreAll(actingBy(principal), principal.actor)
      return { restored: changed, skipped }
    },
  })
}
