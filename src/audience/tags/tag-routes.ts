import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { readName } from '../../core/names.js'
import { isoTime } from '../../core/moments.js'
import { recordActivity } from '../../events/activity-store.js'
import { settingsChanges } from '../../events/settings-changes.js'
import { DONE, Done, Id, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { cursorQuery, nameSearch } from '../../http/pagination.js'
import { etagOf, Tagged } from '../../http/preconditions.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { describeUses, forceQuery, type ReferenceParts } from '../../resource/references.js'
import { MAX_TAGS, RESTORABLE_MS, type AudienceParts } from '../audience-parts.js'
import { checkText, notDeleted, refusal, refuseMoreThan } from '../checks.js'
import { fold } from '../../core/fold.js'
import {
  countTags,
  findDeletedTag,
  findTag,
  insertTag,
  listTags,
  markTagDeleted,
  restoreTag,
  updateTag,
  type Tag,
} from './tag-store.js'
import { requireTag } from './tags.js'

export const TagParams = Type.Object({ id: Type.String() })

const Name = Type.String({ minLength: 1, maxLength: 100 })
const Color = Type.String({ maxLength: 9, description: 'CSS hex color, e.g. `#3366cc`.' })
const Description = Type.Union([Type.String({ maxLength: 1_000 }), Type.Null()])

const NewTagBody = Type.Object(
  { name: Name, color: Type.Optional(Color), description: Type.Optional(Description) },
  { additionalProperties: false, title: 'NewTag' },
)

const TagChangesBody = Type.Object(
  {
    name: Type.Optional(Name),
    color: Type.Optional(Type.Union([Color, Type.Null()])),
    description: Type.Optional(Description),
  },
  { additionalProperties: false, title: 'TagChanges' },
)

const TagSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    color: TextOrNull(),
    description: TextOrNull(),
    contact_count: Type.Integer(),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'Tag' },
)

export function tagRoutes({ database, clock, newId, references }: AudienceParts & ReferenceParts): Route[] {
  return [
    listRoute({
      method: 'GET',
      path: '/tags',
      access: 'tags:read',
      operationId: 'listTags',
      chapter: 'Tags',
      summary: 'List tags by name.',
      query: Type.Object({ ...cursorQuery, ...nameSearch }, { additionalProperties: false }),
      item: TagSchema,
      async handle({ principal, query }, page) {
        const found = await listTags(database.slowReader, principal.workspaceId, query.search, page)
        return { ...found, items: found.items.map(tag => tagToApi(tag, principal.isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/tags',
      access: 'tags:write',
      operationId: 'createTag',
      hasEtag: true,
      chapter: 'Tags',
      summary: 'Create a tag.',
      description: `Names are unique; case and accents are ignored. A workspace has at most ${MAX_TAGS} tags.`,
      body: NewTagBody,
      response: TagSchema,
      status: 201,
      errors: ['duplicate', 'limit_reached'],
      async handle({ principal, body }) {
        const { workspaceId, isSandbox } = principal
        const now = clock.now()
        const tag = {
          id: newId(),
          workspaceId,
          name: readName(body.name),
          color: readColor(body.color) ?? null,
          description: checkText('description', body.description) ?? null,
          createdAt: now,
          updatedAt: now,
        }
        await database.write(async tx => {
          refuseMoreThan(MAX_TAGS, await countTags(tx.db, workspaceId), 'tags')
          if (!(await insertTag(tx.db, tag))) throw duplicate(tag.name)
          await recordActivity(tx, principal, now, { action: 'tag.created', subject: tag.name })
        })
        return tagged({ ...tag, contactCount: 0 }, isSandbox)
      },
    }),
    route({
      method: 'GET',
      path: '/tags/:id',
      access: 'tags:read',
      operationId: 'getTag',
      hasEtag: true,
      chapter: 'Tags',
      summary: 'Get a tag.',
      description: 'The `ETag` covers everything shown. With `If-Match`, `contact_count` does not count.',
      params: TagParams,
      response: TagSchema,
      errors: ['not_found'],
      handle: async ({ principal, params }) =>
        tagged(await requireTag(database.reader, principal.workspaceId, params.id), principal.isSandbox),
    }),
    route({
      method: 'PATCH',
      path: '/tags/:id',
      access: 'tags:write',
      operationId: 'updateTag',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Tags',
      summary: 'Update a tag.',
      description:
        'Only the given fields change; null clears color and description. Segments, dynamic lists and automations that use the tag follow a rename.',
      params: TagParams,
      body: TagChangesBody,
      response: TagSchema,
      errors: ['not_found', 'duplicate'],
      async handle({ principal, params, body, precondition }) {
        const name = body.name === undefined ? undefined : readName(body.name)
        const [color, description] = [readColor(body.color), checkText('description', body.description)]
        const tag = await database.write(async tx => {
          const before = await requireTag(tx.db, principal.workspaceId, params.id)
          precondition?.check(tagEtag(before))
          const after: Tag = {
            ...before,
            ...given({ name, color, description }),
            updatedAt: clock.now(),
          }
          const isRenamed = fold(after.name) !== fold(before.name)
          if (isRenamed && (await findTag(tx.db, principal.workspaceId, { name: after.name })))
            throw duplicate(after.name)
          await updateTag(tx.db, after)
          if (after.name !== before.name)
            await references.rename(tx.db, { kind: 'tag', ...before }, after.name)
          const { isSandbox } = principal
          await recordActivity(tx, principal, after.updatedAt, {
            action: 'tag.changed',
            subject: after.name,
            details: { id: after.id },
            changes: settingsChanges(tagToApi(before, isSandbox), tagToApi(after, isSandbox), ['updated_at']),
          })
          return after
        })
        return tagged(tag, principal.isSandbox)
      },
    }),
    route({
      method: 'DELETE',
      path: '/tags/:id',
      access: 'tags:write',
      operationId: 'deleteTag',
      checksEtag: true,
      chapter: 'Tags',
      summary: 'Delete a tag; contacts are kept.',
      description: `${describeUses('tag', 'an active automation, a segment or a dynamic list')} It can be restored for 30 days.`,
      params: TagParams,
      query: forceQuery,
      response: Done,
      errors: ['not_found', 'conflict'],
      handle: ({ principal, params, query, precondition }) =>
        database.write(async tx => {
          const tag = await requireTag(tx.db, principal.workspaceId, params.id)
          precondition?.check(tagEtag(tag))
          const now = clock.now()
          if (query.force !== true) await references.refuseIfUsed(tx.db, { kind: 'tag', ...tag })
          await markTagDeleted(tx.db, tag.seq, now)
          await recordActivity(tx, principal, now, {
            action: 'tag.deleted',
            subject: tag.name,
            details: { id: tag.id, contacts: tag.contactCount },
          })
          return DONE
        }),
    }),
    route({
      method: 'POST',
      path: '/tags/:id/restore',
      access: 'tags:write',
      operationId: 'restoreTag',
      hasEtag: true,
      chapter: 'Tags',
      summary: 'Restore a deleted tag.',
      description: 'On its contacts too, if it was deleted in the last 30 days and its name is free.',
      params: TagParams,
      response: TagSchema,
      errors: ['not_found', 'duplicate', 'limit_reached'],
      async handle({ principal, params }) {
        const { workspaceId, isSandbox } = principal
        const restored = await database.write(async tx => {
          const now = clock.now()
          const tag = await findDeletedTag(tx.db, workspaceId, params.id.toLowerCase(), now - RESTORABLE_MS)
          if (!tag) throw notDeleted('tag')
          refuseMoreThan(MAX_TAGS, await countTags(tx.db, workspaceId), 'tags')
          if (await findTag(tx.db, workspaceId, { name: tag.name })) throw duplicate(tag.name)
          await restoreTag(tx.db, tag.seq)
          await recordActivity(tx, principal, now, {
            action: 'tag.restored',
            subject: tag.name,
            details: { id: tag.id, contacts: tag.contactCount },
          })
          return tag
        })
        return tagged(restored, isSandbox)
      },
    }),
  ]
}

/** Covers everything but the count of contacts, which changes all the time. */
function tagEtag({ id, name, color, description, updatedAt }: Omit<Tag, 'seq'>): string {
  return etagOf(id, name, color, description, updatedAt)
}

function tagged(tag: Omit<Tag, 'seq'>, isSandbox: boolean): Tagged<Static<typeof TagSchema>> {
  return new Tagged(tagToApi(tag, isSandbox), tagEtag(tag))
}

function duplicate(name: string): AppError {
  return new AppError('duplicate', `a tag named ${JSON.stringify(name)} already exists`, { path: 'name' })
}

/** 3, 4, 6 or 8 digits, as in CSS. @throws AppError validation_error */
function readColor(color: string | null | undefined): string | null | undefined {
  if (typeof color === 'string' && !/^#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(color))
    throw refusal('color', 'color must be a hex color such as #3366cc')
  return color?.toLowerCase() ?? color
}

export function tagToApi(tag: Omit<Tag, 'seq'>, isSandbox: boolean): Static<typeof TagSchema> {
  return {
    id: tag.id,
    name: tag.name,
    color: tag.color,
    description: tag.description,
    contact_count: tag.contactCount,
    is_sandbox: isSandbox,
    created_at: isoTime(tag.createdAt),
    updated_at: isoTime(tag.updatedAt),
  }
}
