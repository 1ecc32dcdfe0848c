/** Declared attributes: label and type of what contacts have by that name. The values themselves are in contacts. */
import Type, { type Static } from 'typebox'
import { ACTOR_TYPES } from '../../core/actor.js'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import { readName, readOptionalName } from '../../core/names.js'
import type { Queries } from '../../db/database.js'
import { recordActivity } from '../../events/activity-store.js'
import { settingsChanges } from '../../events/settings-changes.js'
import { DONE, Done, Id, Moment, TextOrNull } from '../../http/answer/answer-fields.js'
import { cursorQuery, nameSearch } from '../../http/pagination.js'
import { etagOf, Tagged } from '../../http/preconditions.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { MAX_DECLARED, type AudienceParts } from '../audience-parts.js'
import { refuseMoreThan } from '../checks.js'
import {
  countAttributes,
  deleteAttribute,
  findAttribute,
  insertAttribute,
  listAttributes,
  updateAttribute,
  type Attribute,
} from './attribute-store.js'
import { ATTRIBUTE_TYPES } from './declared-values.js'

const AttributeParams = Type.Object({ id: Type.String() })

const Label = Type.Union([Type.String({ maxLength: 100 }), Type.Null()], {
  description: 'Shown instead of the name.',
})

const TypeOfAttribute = Type.Enum([...ATTRIBUTE_TYPES], {
  description:
    'Values written by the API, forms and automations from then on are converted if they are unambiguous: for `number`, text such as ' +
    '`"19.90"`; for `boolean`, `"true"` and `"false"`; for `text`, numbers and true or false. A `date` is ISO 8601 text. Any other value ' +
    'is kept as given. Values that contacts already have are not changed.',
})

const NewAttributeBody = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 100,
      description:
        'As in `attributes` of contacts; case counts. A dotted name declares a nested attribute, whose values are not converted.',
    }),
    label: Type.Optional(Label),
    type: TypeOfAttribute,
  },
  { additionalProperties: false, title: 'NewAttribute' },
)

const AttributeChangesBody = Type.Object(
  { label: Type.Optional(Label), type: Type.Optional(TypeOfAttribute) },
  { additionalProperties: false, title: 'AttributeChanges' },
)

const AttributeSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    label: TextOrNull(),
    type: TypeOfAttribute,
    created_by: Type.Object({
      type: Type.Enum([...ACTOR_TYPES]),
      id: TextOrNull({ description: 'Of the key, operator or token.' }),
    }),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'Attribute' },
)

const EXAMPLE = { name: 'revenue', label: 'Revenue', type: 'number' }

export function attributeRoutes({ database, clock, newId }: AudienceParts): Route[] {
  return [
    listRoute({
      method: 'GET',
      path: '/attributes',
      access: 'contacts:read',
      operationId: 'listAttributes',
      chapter: 'Attributes',
      summary: 'List declared attributes by name.',
      description: 'Attributes of contacts need no declaration; those without one are not listed.',
      query: Type.Object({ ...cursorQuery, ...nameSearch }, { additionalProperties: false }),
      item: AttributeSchema,
      async handle({ principal, query }, page) {
        const found = await listAttributes(database.slowReader, principal.workspaceId, query.search, page)
        return { ...found, items: found.items.map(one => attributeToApi(one, principal.isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/attributes',
      access: 'contacts:write',
      operationId: 'createAttribute',
      hasEtag: true,
      chapter: 'Attributes',
      summary: 'Declare an attribute.',
      description:
        'Rules of segments, dynamic lists and automations that do not suit the type are answered with `warnings`. ' +
        `A workspace has at most ${MAX_DECLARED} declared attributes.`,
      body: NewAttributeBody,
      example: EXAMPLE,
      response: AttributeSchema,
      status: 201,
      errors: ['duplicate', 'limit_reached'],
      async handle({ principal, body }) {
        const { workspaceId, isSandbox, actor } = principal
        const now = clock.now()
        const attribute: Attribute = {
          id: newId(),
          workspaceId,
          name: readName(body.name),
          label: readLabel(body.label) ?? null,
          type: body.type,
          createdBy: actor,
          createdAt: now,
          updatedAt: now,
        }
        await database.write(async tx => {
          refuseMoreThan(MAX_DECLARED, await countAttributes(tx.db, workspaceId), 'declared attributes')
          if (!(await insertAttribute(tx.db, attribute)))
            throw new AppError(
              'duplicate',
              `an attribute named ${JSON.stringify(attribute.name)} is already declared`,
              { path: 'name' },
            )
          await recordActivity(tx, { workspaceId, actor }, now, {
            action: 'attribute.created',
            subject: attribute.name,
            details: { id: attribute.id, type: attribute.type },
          })
        })
        return tagged(attribute, isSandbox)
      },
    }),
    route({
      method: 'GET',
      path: '/attributes/:id',
      access: 'contacts:read',
      operationId: 'getAttribute',
      hasEtag: true,
      chapter: 'Attributes',
      summary: 'Get a declared attribute.',
      params: AttributeParams,
      response: AttributeSchema,
      errors: ['not_found'],
      handle: async ({ principal, params }) =>
        tagged(await getAttribute(database.reader, principal.workspaceId, params.id), principal.isSandbox),
    }),
    route({
      method: 'PATCH',
      path: '/attributes/:id',
      access: 'contacts:write',
      operationId: 'updateAttribute',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Attributes',
      summary: 'Update a declared attribute.',
      description:
        'Only the given fields change; null clears the label. Values that contacts have are not converted to a new type: write or import ' +
        'them again. The name cannot change.',
      params: AttributeParams,
      body: AttributeChangesBody,
      response: AttributeSchema,
      errors: ['not_found'],
      async handle({ principal, params, body, precondition }) {
        const { workspaceId, isSandbox, actor } = principal
        const label = readLabel(body.label)
        const attribute = await database.write(async tx => {
          const before = await getAttribute(tx.db, workspaceId, params.id)
          precondition?.check(attributeEtag(before))
          const after: Attribute = {
            ...before,
            ...(label === undefined ? {} : { label }),
            type: body.type ?? before.type,
            updatedAt: clock.now(),
          }
          await updateAttribute(tx.db, after)
          await recordActivity(tx, { workspaceId, actor }, after.updatedAt, {
            action: 'attribute.changed',
            subject: after.name,
            details: { id: after.id },
            changes: settingsChanges(attributeToApi(before, isSandbox), attributeToApi(after, isSandbox), [
              'updated_at',
            ]),
          })
          return after
        })
        return tagged(attribute, isSandbox)
      },
    }),
    route({
      method: 'DELETE',
      path: '/attributes/:id',
      access: 'contacts:write',
      operationId: 'deleteAttribute',
      checksEtag: true,
      chapter: 'Attributes',
      summary: 'Delete a declaration; values are kept.',
      params: AttributeParams,
      response: Done,
      errors: ['not_found'],
      handle: ({ principal: { workspaceId, actor }, params, precondition }) =>
        database.write(async tx => {
          const attribute = await getAttribute(tx.db, workspaceId, params.id)
          precondition?.check(attributeEtag(attribute))
          await deleteAttribute(tx.db, attribute.id)
          await recordActivity(tx, { workspaceId, actor }, clock.now(), {
            action: 'attribute.deleted',
            subject: attribute.name,
            details: { id: attribute.id, type: attribute.type },
          })
          return DONE
        }),
    }),
  ]
}

/** @throws AppError not_found */
async function getAttribute(db: Queries, workspaceId: string, id: string): Promise<Attribute> {
  const attribute = isUuid(id) ? await findAttribute(db, workspaceId, id.toLowerCase()) : undefined
  if (!attribute) throw new AppError('not_found', 'no such declared attribute')
  return attribute
}

/** @returns null if it is empty */
function readLabel(label: string | null | undefined): string | null | undefined {
  return typeof label === 'string' ? readOptionalName(label, 'label') || null : label
}

function attributeEtag({ id, name, label, type, updatedAt }: Attribute): string {
  return etagOf(id, name, label, type, updatedAt)
}

function tagged(attribute: Attribute, isSandbox: boolean): Tagged<Static<typeof AttributeSchema>> {
  return new Tagged(attributeToApi(attribute, isSandbox), attributeEtag(attribute))
}

function attributeToApi(attribute: Attribute, isSandbox: boolean): Static<typeof AttributeSchema> {
  const { type, id = null } = attribute.createdBy
  return {
    id: attribute.id,
    name: attribute.name,
    label: attribute.label,
    type: attribute.type,
    created_by: { type, id },
    is_sandbox: isSandbox,
    created_at: isoTime(attribute.createdAt),
    updated_at: isoTime(attribute.updatedAt),
  }
}
