import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { readName } from '../../core/names.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { recordActivity } from '../../events/activity-store.js'
import { settingsChanges } from '../../events/settings-changes.js'
import { DONE, Done, Id, Moment, orNull } from '../../http/answer/answer-fields.js'
import { cursorQuery, nameSearch } from '../../http/pagination.js'
import { etagOf, Tagged } from '../../http/preconditions.js'
import { mayDo } from '../../http/principal.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { describeUses, forceQuery, type ReferenceParts } from '../../resource/references.js'
import { MAX_SEGMENTS, type AudienceParts } from '../audience-parts.js'
import { refuseMoreThan } from '../checks.js'
import { restoreDeleted } from '../deleted-store.js'
import { ContactSchema, shownContact } from '../contacts/contact-schema.js'
import { patience } from '../scan-store.js'
import { estimate, listMatching, estimateWithSample } from './audience-query-store.js'
import { ConditionsSchema } from './conditions.js'
import { readConditions } from './read-conditions.js'
import { checkConditions } from './rule-references.js'
import { warningsOf, Warnings } from './warnings.js'
import {
  countSegments,
  findSegment,
  insertSegment,
  listSegments,
  markSegmentDeleted,
  updateSegment,
  type Segment,
} from './segment-store.js'

const SegmentParams = Type.Object({ id: Type.String() })
const Name = Type.String({ minLength: 1, maxLength: 200 })

const NewSegmentBody = Type.Object(
  { name: Name, conditions: Type.Optional(ConditionsSchema) },
  { additionalProperties: false, title: 'NewSegment' },
)

const SegmentChangesBody = Type.Object(
  { name: Type.Optional(Name), conditions: Type.Optional(ConditionsSchema) },
  { additionalProperties: false, title: 'SegmentChanges' },
)

const EstimateBody = Type.Object(
  { conditions: ConditionsSchema },
  { additionalProperties: false, title: 'ConditionsToEstimate' },
)

/** Sample contacts returned with an estimate. */
const SAMPLE_SIZE = 10

const SegmentSchema = Type.Object(
  {
    id: Id(),
    name: Type.String(),
    conditions: ConditionsSchema,
    warnings: Warnings,
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
    updated_at: Moment(),
  },
  { title: 'Segment' },
)

const EXAMPLE = {
  name: 'Adults in Berlin',
  conditions: {
    match: 'all',
    rules: [
      { field: 'city', operator: 'equals', value: 'Berlin' },
      { field: 'age', operator: 'gte', value: 18 },
    ],
  },
}

export function segmentRoutes({
  database,
  clock,
  newId,
  references,
}: AudienceParts & ReferenceParts): Route[] {
  const asking = (workspaceId: string) => ({ workspaceId, now: clock.now() })
  const shown = async (segment: Segment, isSandbox: boolean) => ({
    ...segmentToApi(segment, isSandbox),
    warnings: await warningsOf({ database, clock }, segment.workspaceId, segment.conditions),
  })
  return [
    listRoute({
      method: 'GET',
      path: '/segments',
      access: 'segments:read',
      operationId: 'listSegments',
      chapter: 'Segments',
      summary: 'List segments, newest first.',
      query: Type.Object({ ...cursorQuery, ...nameSearch }, { additionalProperties: false }),
      item: SegmentSchema,
      async handle({ principal, query }, page) {
        const found = await listSegments(database.slowReader, principal.workspaceId, query.search, page)
        return { ...found, items: found.items.map(one => segmentToApi(one, principal.isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/segments',
      access: 'segments:write',
      operationId: 'createSegment',
      hasEtag: true,
      chapter: 'Segments',
      summary: 'Create a segment.',
      description: `Without rules it matches nobody. A workspace has at most ${MAX_SEGMENTS} segments.`,
      body: NewSegmentBody,
      example: EXAMPLE,
      response: SegmentSchema,
      status: 201,
      errors: ['limit_reached'],
      async handle({ principal, body }) {
        const { workspaceId, isSandbox } = principal
        const { conditions = { match: 'all', rules: [] } } = body
        const now = clock.now()
        const segment: Segment = {
          id: newId(),
          workspaceId,
          name: readName(body.name),
          conditions,
          createdAt: now,
          updatedAt: now,
        }
        await database.write(async tx => {
          await checkConditions(tx.db, workspaceId, conditions)
          refuseMoreThan(MAX_SEGMENTS, await countSegments(tx.db, workspaceId), 'segments')
          await insertSegment(tx.db, segment)
          await recordActivity(tx, principal, now, { action: 'segment.created', subject: segment.name })
        })
        return new Tagged(await shown(segment, isSandbox), segmentEtag(segment))
      },
    }),
    route({
      method: 'GET',
      path: '/segments/:id',
      access: 'segments:read',
      operationId: 'getSegment',
      hasEtag: true,
      chapter: 'Segments',
      summary: 'Get a segment.',
      params: SegmentParams,
      response: SegmentSchema,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const segment = await requireSegment(database.reader, principal.workspaceId, params.id)
        return new Tagged(segmentToApi(segment, principal.isSandbox), segmentEtag(segment))
      },
    }),
    route({
      method: 'PATCH',
      path: '/segments/:id',
      access: 'segments:write',
      operationId: 'updateSegment',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Segments',
      summary: 'Update a segment.',
      params: SegmentParams,
      body: SegmentChangesBody,
      response: SegmentSchema,
      errors: ['not_found'],
      async handle({ principal, params, body: { name, conditions }, precondition }) {
        const { isSandbox } = principal
        const checked = name === undefined ? undefined : readName(name)
        const segment = await database.write(async tx => {
          const before = await requireSegment(tx.db, principal.workspaceId, params.id)
          precondition?.check(segmentEtag(before))
          if (conditions) await checkConditions(tx.db, principal.workspaceId, conditions)
          const after: Segment = {
            ...before,
            ...given({ name: checked, conditions }),
            updatedAt: clock.now(),
          }
          await updateSegment(tx.db, after)
          await recordActivity(tx, principal, after.updatedAt, {
            action: 'segment.changed',
            subject: after.name,
            details: { id: after.id },
            changes: settingsChanges(segmentToApi(before, isSandbox), segmentToApi(after, isSandbox), [
              'updated_at',
            ]),
          })
          return after
        })
        return new Tagged(await shown(segment, isSandbox), segmentEtag(segment))
      },
    }),
    route({
      method: 'DELETE',
      path: '/segments/:id',
      access: 'segments:write',
      operationId: 'deleteSegment',
      checksEtag: true,
      chapter: 'Segments',
      summary: 'Delete a segment; contacts are kept.',
      description: `${describeUses(
        'segment',
        'an active automation, or a campaign that is scheduled, sending or paused,',
      )} It can be restored for 30 days.`,
      params: SegmentParams,
      query: forceQuery,
      response: Done,
      errors: ['not_found', 'conflict'],
      handle: ({ principal, params, query, precondition }) =>
        database.write(async tx => {
          const { workspaceId } = principal
          const [segment, now] = [await requireSegment(tx.db, workspaceId, params.id), clock.now()]
          precondition?.check(segmentEtag(segment))
          if (query.force !== true) await references.refuseIfUsed(tx.db, { kind: 'segment', ...segment })
          await markSegmentDeleted(tx.db, segment.id, now)
          await recordActivity(tx, principal, now, {
            action: 'segment.deleted',
            subject: segment.name,
            details: { id: segment.id },
          })
          return DONE
        }),
    }),
    route({
      method: 'POST',
      path: '/segments/:id/restore',
      access: 'segments:write',
      operationId: 'restoreSegment',
      hasEtag: true,
      chapter: 'Segments',
      summary: 'Restore a deleted segment.',
      description: 'If it was deleted in the last 30 days.',
      params: SegmentParams,
      response: SegmentSchema,
      errors: ['not_found', 'limit_reached'],
      async handle({ principal, params }) {
        const { workspaceId, isSandbox } = principal
        const segment = await database.write(async tx => {
          const now = clock.now()
          refuseMoreThan(MAX_SEGMENTS, await countSegments(tx.db, workspaceId), 'segments')
          await restoreDeleted(tx.db, 'segments', workspaceId, params.id, now)
          const restored = await requireSegment(tx.db, workspaceId, params.id)
          await recordActivity(tx, principal, now, {
            action: 'segment.restored',
            subject: restored.name,
            details: { id: restored.id },
          })
          return restored
        })
        return new Tagged(await shown(segment, isSandbox), segmentEtag(segment))
      },
    }),
    route({
      method: 'POST',
      path: '/segments/:id/estimate',
      access: 'segments:read',
      isReadOnly: true,
      operationId: 'estimateSegment',
      chapter: 'Segments',
      summary: "Estimate a segment's size.",
      description:
        'Counts matching contacts and how many of them can be mailed: subscribed, not bounced, with neither address nor domain suppressed. ' +
        'A count that takes more than a few seconds returns 503.',
      params: SegmentParams,
      response: Type.Object(
        { count: Type.Integer(), mailable_count: Type.Integer(), warnings: Warnings },
        { title: 'SegmentEstimate' },
      ),
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params }) {
        const { conditions } = await requireSegment(database.reader, workspaceId, params.id)
        const found = await estimate(
          database.slowReader,
          readConditions(conditions),
          asking(workspaceId),
          patience(clock),
        )
        const warnings = await warningsOf({ database, clock }, workspaceId, conditions)
        return { count: found.count, mailable_count: found.mailable, warnings }
      },
    }),
    route({
      method: 'POST',
      path: '/segments/estimate',
      access: 'segments:read',
      operationId: 'estimateConditions',
      chapter: 'Segments',
      isReadOnly: true,
      summary: 'Estimate unsaved conditions.',
      description:
        'Counts matching contacts and those that can be mailed, as `POST /segments/{id}/estimate` does. With the permission ' +
        `\`contacts:read\`, \`sample\` holds up to ${SAMPLE_SIZE} of them, newest first; otherwise it is null. ` +
        'A count that takes more than a few seconds returns 503.',
      body: EstimateBody,
      example: { conditions: EXAMPLE.conditions },
      response: Type.Object(
        {
          count: Type.Integer(),
          mailable_count: Type.Integer(),
          warnings: Warnings,
          sample: orNull(Type.Array(ContactSchema, { maxItems: SAMPLE_SIZE })),
        },
        { title: 'ConditionsEstimate' },
      ),
      async handle({ principal, body: { conditions } }) {
        const { workspaceId, isSandbox } = principal
        const group = await checkConditions(database.reader, workspaceId, conditions)
        const [asked, checkTimeout] = [asking(workspaceId), patience(clock)]
        const maySee = mayDo(principal, 'contacts:read')
        const {
          estimate: { count, mailable },
          sample,
        } = await estimateWithSample(
          database.slowReader,
          group,
          asked,
          maySee ? SAMPLE_SIZE : 0,
          checkTimeout,
        )
        return {
          count,
          mailable_count: mailable,
          warnings: await warningsOf({ database, clock }, workspaceId, conditions),
          sample: maySee ? sample.map(one => shownContact(one, isSandbox)) : null,
        }
      },
    }),
    listRoute({
      method: 'GET',
      path: '/segments/:id/contacts',
      access: 'segments:read',
      operationId: 'listSegmentContacts',
      chapter: 'Segments',
      summary: 'List contacts in a segment, newest first.',
      params: SegmentParams,
      query: Type.Object(cursorQuery, { additionalProperties: false }),
      item: ContactSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId, isSandbox }, params }, page) {
        const { conditions } = await requireSegment(database.reader, workspaceId, params.id)
        const group = readConditions(conditions)
        const found = await listMatching(
          database.slowReader,
          group,
          asking(workspaceId),
          page,
          patience(clock),
        )
        return { ...found, items: found.items.map(one => shownContact(one, isSandbox)) }
      },
    }),
  ]
}

function segmentEtag({ id, name, conditions, updatedAt }: Segment): string {
  return etagOf(id, name, conditions, updatedAt)
}

/** @throws AppError not_found */
export async function requireSegment(
  db: Queries,
  workspaceId: string,
  id: string,
  path?: string,
): Promise<Segment> {
  const segment = isUuid(id) ? await findSegment(db, workspaceId, id.toLowerCase()) : undefined
  if (!segment) throw new AppError('not_found', 'no such segment', path === undefined ? {} : { path })
  return segment
}

export function segmentToApi(segment: Segment, isSandbox: boolean): Static<typeof SegmentSchema> {
  return {
    id: segment.id,
    name: segment.name,
    conditions: segment.conditions,
    is_sandbox: isSandbox,
    created_at: isoTime(segment.createdAt),
    updated_at: isoTime(segment.updatedAt),
  }
}
