import Type, { type Static } from 'typebox'
import { given } from '../../core/given.js'
import { readName } from '../../core/names.js'
import { isoTime } from '../../core/moments.js'
import { recordActivity } from '../../events/activity-store.js'
import { settingsChanges } from '../../events/settings-changes.js'
import { DONE, Done, Id, IntegerOrNull, Moment, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { etagOf, Tagged } from '../../http/preconditions.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { describeUses, forceQuery, type ReferenceParts } from '../../resource/references.js'
import { MAX_LISTS, type AudienceParts } from '../audience-parts.js'
import { checkText, refusal, refuseMoreThan } from '../checks.js'
import { restoreDeleted } from '../deleted-store.js'
import { patience } from '../scan-store.js'
import { countMatching } from '../segments/audience-query-store.js'
import { ConditionsSchema, type Conditions } from '../segments/conditions.js'
import { readConditions } from '../segments/read-conditions.js'
import { warningsOf, Warnings } from '../segments/warnings.js'
import { checkConditions } from '../segments/rule-references.js'
import { MemberCounts } from './member-counts.js'
import {
  countLists,
  insertList,
  isNameShared,
  listLists,
  markListDeleted,
  updateList,
  type List,
} from './list-store.js'
import { requireList } from './lists.js'

export const ListParams = Type.Object({ id: Type.String() })

const Name = Type.String({ minLength: 1, maxLength: 200 })
const ListTypeSchema = Type.Enum(['static', 'dynamic'], {
  description:
    '`static`: contacts are added and removed explicitly. `dynamic`: the contacts that currently match its conditions.',
})

const changeable = {
  description: Type.Optional(Type.Union([Type.String({ maxLength: 1_000 }), Type.Null()])),
  conditions: Type.Optional(ConditionsSchema),
  public: Type.Optional(Type.Boolean({ description: 'Shown on the preferences page.' })),
  double_opt_in: Type.Optional(
    Type.Boolean({ description: 'Subscriptions through forms must be confirmed by email.' }),
  ),
}

const NewListBody = Type.Object(
  { name: Name, type: Type.Optional(ListTypeSchema), ...changeable },
  { additionalProperties: false, title: 'NewList' },
)

const ListChangesBody = Type.Object(
  { name: Type.Optional(Name), ...changeable },
  { additionalProperties: false, title: 'ListChanges' },
)

const ListSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    description: TextOrNull(),
    type: ListTypeSchema,
    conditions: orNull(ConditionsSchema, { description: 'Null for a static list.' }),
    warnings: Warnings,
    public: Type.Boolean(),
    double_opt_in: Type.Boolean(),
    member_count: IntegerOrNull({
      description:
        'For a dynamic list, counted on read. In a list response the count is up to a minute old, and null if counting the dynamic lists on ' +
        'the page takes more than a second; get the list itself, or retry.',
    }),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'List' },
)

export function listRoutes(parts: AudienceParts & ReferenceParts): Route[] {
  const { database, clock, newId, references } = parts
  const memberCounts = new MemberCounts(clock, (list, checkTimeout) =>
    countMembers(parts, list, checkTimeout),
  )
  const shown = async (list: List, isSandbox: boolean) =>
    listToApi(list, isSandbox, list.type === 'static' ? list.memberCount : await countMembers(parts, list))
  const withWarnings = async (list: List, isSandbox: boolean) => ({
    ...(await shown(list, isSandbox)),
    ...(list.conditions ? { warnings: await warningsOf(parts, list.workspaceId, list.conditions) } : {}),
  })
  return [
    listRoute({
      method: 'GET',
      path: '/lists',
      access: 'lists:read',
      operationId: 'listLists',
      chapter: 'Lists',
      summary: 'List lists, newest first.',
      query: Type.Object(
        { ...cursorQuery, type: Type.Optional(ListTypeSchema) },
        { additionalProperties: false },
      ),
      item: ListSchema,
      async handle({ principal, query: { type } }, page) {
        const filter = type === undefined ? {} : { type }
        const found = await listLists(database.slowReader, principal.workspaceId, filter, page)
        const counts = await memberCounts.ofPage(found.items)
        return {
          ...found,
          items: found.items.map(list => listToApi(list, principal.isSandbox, counts.get(list.id) ?? null)),
        }
      },
    }),
    route({
      method: 'POST',
      path: '/lists',
      access: 'lists:write',
      operationId: 'createList',
      hasEtag: true,
      chapter: 'Lists',
      summary: 'Create a list.',
      description:
        'Static by default. A dynamic list requires conditions; a static list must not have any. A workspace has at most ' +
        `${MAX_LISTS} lists.`,
      body: NewListBody,
      response: ListSchema,
      status: 201,
      errors: ['limit_reached'],
      async handle({ principal, body }) {
        const { workspaceId, isSandbox } = principal
        const { type = 'static', conditions } = body
        if (type === 'dynamic' && !conditions)
          throw refusal('conditions', 'conditions are required for a dynamic list')
        refuseUnfit(type, conditions)
        const now = clock.now()
        const list = {
          id: newId(),
          workspaceId,
          name: readName(body.name),
          description: checkText('description', body.description) ?? null,
          type,
          conditions: conditions ?? null,
          isPublic: body.public ?? false,
          doubleOptIn: body.double_opt_in ?? false,
          createdAt: now,
          updatedAt: now,
        }
        await database.write(async tx => {
          if (conditions) await checkConditions(tx.db, workspaceId, conditions)
          refuseMoreThan(MAX_LISTS, await countLists(tx.db, workspaceId), 'lists')
          await insertList(tx.db, list)
          const subject = list.name
          await recordActivity(tx, principal, now, { action: 'list.created', subject })
        })
        const made = { ...list, seq: 0, memberCount: 0 }
        return new Tagged(await withWarnings(made, isSandbox), listEtag(made))
      },
    }),
    route({
      method: 'GET',
      path: '/lists/:id',
      access: 'lists:read',
      operationId: 'getList',
      hasEtag: true,
      chapter: 'Lists',
      summary: 'Get a list.',
      description: 'The `ETag` covers everything shown. With `If-Match`, `member_count` does not count.',
      params: ListParams,
      response: ListSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }) {
        const list = await requireList(database.reader, workspaceId, params.id)
        return new Tagged(await shown(list, isSandbox), listEtag(list))
      },
    }),
    route({
      method: 'PATCH',
      path: '/lists/:id',
      access: 'lists:write',
      operationId: 'updateList',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Lists',
      summary: 'Update a list.',
      description: 'Only the given fields change; null clears the description. The type cannot be changed.',
      params: ListParams,
      body: ListChangesBody,
      response: ListSchema,
      errors: ['not_found'],
      async handle({ principal, params, body, precondition }) {
        const { workspaceId, isSandbox } = principal
        const name = body.name === undefined ? undefined : readName(body.name)
        const description = checkText('description', body.description)
        const list = await database.write(async tx => {
          const before = await requireList(tx.db, workspaceId, params.id)
          precondition?.check(listEtag(before))
          refuseUnfit(before.type, body.conditions)
          if (body.conditions)
            await checkConditions(tx.db, workspaceId, body.conditions, { listId: before.id })
          const after: List = {
            ...before,
            ...given({
              name,
              description,
              conditions: body.conditions,
              isPublic: body.public,
              doubleOptIn: body.double_opt_in,
            }),
            updatedAt: clock.now(),
          }
          // If another list has the old name, rules using that name now mean the other list.
          if (after.name !== before.name && !(await isNameShared(tx.db, before)))
            await references.rename(tx.db, { kind: 'list', ...before }, after.name)
          await updateList(tx.db, after)
          await recordActivity(tx, principal, after.updatedAt, {
            action: 'list.changed',
            subject: after.name,
            details: { id: after.id },
            changes: settingsChanges(listToApi(before, isSandbox, null), listToApi(after, isSandbox, null), [
              'updated_at',
            ]),
          })
          return after
        })
        return new Tagged(await withWarnings(list, isSandbox), listEtag(list))
      },
    }),
    route({
      method: 'DELETE',
      path: '/lists/:id',
      access: 'lists:write',
      operationId: 'deleteList',
      checksEtag: true,
      chapter: 'Lists',
      summary: 'Delete a list; contacts are kept.',
      description: `${describeUses(
        'list',
        'an active automation, a campaign that is scheduled, sending or paused, a segment, a dynamic list or a form',
      )} It can be restored for 30 days.`,
      params: ListParams,
      query: forceQuery,
      response: Done,
      errors: ['not_found', 'conflict'],
      handle: ({ principal, params, query, precondition }) =>
        database.write(async tx => {
          const { workspaceId } = principal
          const list = await requireList(tx.db, workspaceId, params.id)
          precondition?.check(listEtag(list))
          if (query.force !== true) await references.refuseIfUsed(tx.db, { kind: 'list', ...list })
          const now = clock.now()
          await markListDeleted(tx.db, list.seq, now)
          await recordActivity(tx, principal, now, {
            action: 'list.deleted',
            subject: list.name,
            details: { id: list.id, members: list.memberCount },
          })
          return DONE
        }),
    }),
    route({
      method: 'POST',
      path: '/lists/:id/restore',
      access: 'lists:write',
      operationId: 'restoreList',
      hasEtag: true,
      chapter: 'Lists',
      summary: 'Restore a deleted list.',
      description: 'With its members, if it was deleted in the last 30 days.',
      params: ListParams,
      response: ListSchema,
      errors: ['not_found', 'limit_reached'],
      async handle({ principal, params }) {
        const { workspaceId, isSandbox } = principal
        const list = await database.write(async tx => {
          const now = clock.now()
          refuseMoreThan(MAX_LISTS, await countLists(tx.db, workspaceId), 'lists')
          await restoreDeleted(tx.db, 'lists', workspaceId, params.id, now)
          const restored = await requireList(tx.db, workspaceId, params.id)
          await recordActivity(tx, principal, now, {
            action: 'list.restored',
            subject: restored.name,
            details: { id: restored.id, members: restored.memberCount },
          })
          return restored
        })
        return new Tagged(await withWarnings(list, isSandbox), listEtag(list))
      },
    }),
  ]
}

/** Covers everything but the count of members, which changes all the time. */
function listEtag({
  id,
  name,
  description,
  type,
  conditions,
  isPublic,
  doubleOptIn,
  updatedAt,
}: List): string {
  return etagOf(id, name, description, type, conditions, isPublic, doubleOptIn, updatedAt)
}

/** @throws AppError validation_error */
function refuseUnfit(type: List['type'], conditions: Conditions | undefined): void {
  if (!conditions) return
  if (type === 'static') throw refusal('conditions', 'a static list must not have conditions')
}

function countMembers(
  { database, clock }: AudienceParts,
  { workspaceId, conditions }: List,
  checkTimeout = patience(clock),
): Promise<number> {
  if (!conditions) return Promise.resolve(0)
  const asking = { workspaceId, now: clock.now() }
  return countMatching(database.slowReader, readConditions(conditions), asking, checkTimeout)
}

export function listToApi(
  list: List,
  isSandbox: boolean,
  memberCount: number | null,
): Static<typeof ListSchema> {
  return {
    id: list.id,
    name: list.name,
    description: list.description,
    type: list.type,
    conditions: list.conditions,
    public: list.isPublic,
    double_opt_in: list.doubleOptIn,
    member_count: memberCount,
    is_sandbox: isSandbox,
    created_at: isoTime(list.createdAt),
    updated_at: isoTime(list.updatedAt),
  }
}
