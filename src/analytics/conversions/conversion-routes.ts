/** Routes of conversions: purchases and other goals, attributed to the message that led to them. */
import Type, { type Static } from 'typebox'
import { findActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid, type NewId } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Database, Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { Id, IdOrNull, Moment } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import type { Principal } from '../../http/principal.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { readTimeRange, timeRangeQuery } from '../../http/time-range.js'
import type { Clock } from '../../world/time/clock.js'
import type { FindAttribution } from './attribution-store.js'
import type { FindContact } from './contacts.js'
import { findConversion, insertConversion, listConversions, type Conversion } from './conversion-store.js'
import { checkCurrency, checkMetadata, Currency, Metadata, Money } from './shop-fields.js'

export interface ConversionParts {
  readonly database: Database
  readonly clock: Clock
  readonly newId: NewId
  readonly findContact: FindContact
  readonly findAttribution: FindAttribution
  /** Events were appended to the log. */
  readonly onEvents: () => void
}

const NewConversionBody = Type.Object(
  {
    contact_id: Type.String({ maxLength: 64, shownFormat: 'uuid' }),
    value: Money('Amount; negative for a refund.'),
    currency: Type.Optional(Currency),
    metadata: Type.Optional(Metadata),
  },
  { additionalProperties: false, title: 'NewConversion' },
)

const ConversionSchema = Type.Object(
  {
    id: Id(),
    contact_id: Id(),
    value: Type.Number(),
    currency: Type.String({ description: 'ISO 4217.' }),
    metadata: Metadata,
    message_id: IdOrNull(),
    campaign_id: IdOrNull(),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
  },
  { title: 'Conversion' },
)

declare module '../../events/event.js' {
  interface ContactEvents {
    /** The payload is the record in the API's form. */
    'conversion.created': ContactEventOf<'conversion.created', Static<typeof ConversionSchema>>
  }
}

const filter = {
  contact_id: Type.Optional(Type.String({ maxLength: 64, description: 'Conversions of this contact.' })),
  email: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 320,
      description: 'Conversions of the contact with this address.',
    }),
  ),
}

/** The filter matches no contact. */
const NO_CONTACT = ''

/** @returns undefined if the filter names no contact */
async function findFiltered(
  { database, findContact }: ConversionParts,
  workspaceId: string,
  query: { readonly contact_id?: string; readonly email?: string },
): Promise<string | undefined> {
  const id = query.contact_id?.toLowerCase()
  if (query.email === undefined) return id
  const contact = await findContact(database.reader, workspaceId, { email: query.email })
  return contact !== undefined && (id === undefined || id === contact.id) ? contact.id : NO_CONTACT
}

export function conversionRoutes(parts: ConversionParts): Route[] {
  const { database } = parts
  return [
    listRoute({
      method: 'GET',
      path: '/conversions',
      access: 'conversions:read',
      operationId: 'listConversions',
      chapter: 'Conversions',
      summary: 'List conversions, newest first.',
      description:
        'Filter by contact or by time of recording. `email` matches existing contacts only; use `contact_id` to find conversions of a ' +
        'deleted contact.',
      query: Type.Object({ ...cursorQuery, ...filter, ...timeRangeQuery }, { additionalProperties: false }),
      item: ConversionSchema,
      async handle({ principal: { workspaceId }, query }, page) {
        const range = readTimeRange(query)
        const contactId = await findFiltered(parts, workspaceId, query)
        if (contactId === NO_CONTACT) return { items: [], total: 0 }
        const asked = { ...range, ...given({ contactId }) }
        const found = await listConversions(database.slowReader, workspaceId, asked, page)
        return { ...found, items: found.items.map(conversionToApi) }
      },
    }),
    route({
      method: 'POST',
      path: '/conversions',
      access: 'conversions:write',
      operationId: 'createConversion',
      chapter: 'Conversions',
      summary: 'Record a conversion.',
      description:
        'Attributed to the message the contact last clicked within seven days, else last opened (`message_id`). The currency defaults to the ' +
        "workspace's. Segment rules on `purchased_product` read `metadata.product_id` and the array `metadata.product_ids`.",
      body: NewConversionBody,
      response: ConversionSchema,
      status: 201,
      errors: ['contact_not_found'],
      handle: async ({ principal, body }) =>
        conversionToApi(await database.write(tx => convert(parts, tx, principal, body))),
    }),
    route({
      method: 'GET',
      path: '/conversions/:id',
      access: 'conversions:read',
      operationId: 'getConversion',
      chapter: 'Conversions',
      summary: 'Get a conversion.',
      params: Type.Object({ id: Type.String() }),
      response: ConversionSchema,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params: { id } }) {
        const found = isUuid(id)
          ? await findConversion(database.reader, workspaceId, id.toLowerCase())
          : undefined
        if (!found) throw new AppError('not_found', 'no such conversion')
        return conversionToApi(found)
      },
    }),
  ]
}

/** @throws AppError validation_error, contact_not_found, workspace_not_found */
async function convert(
  parts: ConversionParts,
  tx: Tx,
  { workspaceId, isSandbox }: Principal,
  body: Static<typeof NewConversionBody>,
): Promise<Conversion> {
  const { metadata = {}, value } = body
  checkMetadata(metadata)
  const currency = body.currency === undefined ? undefined : checkCurrency(body.currency)
  if (!isUuid(body.contact_id))
    throw new AppError('validation_error', 'contact_id must be a UUID', { path: 'contact_id' })
  const contact = await parts.findContact(tx.db, workspaceId, { id: body.contact_id.toLowerCase() })
  if (!contact) throw new AppError('contact_not_found', 'no such contact', { path: 'contact_id' })
  const workspace = await findActingWorkspace(tx.db, workspaceId)
  if (!workspace) throw new AppError('workspace_not_found', "the key's workspace no longer exists")
  const createdAt = parts.clock.now()
  const attribution = await parts.findAttribution(tx.db, {
    workspaceId,
    email: contact.email,
    isSandbox,
    convertedAt: createdAt,
  })
  const conversion: Conversion = {
    id: parts.newId(),
    workspaceId,
    contactId: contact.id,
    value,
    currency: currency ?? workspace.currency,
    metadata,
    messageId: attribution?.messageId ?? null,
    campaignId: attribution?.campaignId ?? null,
    isSandbox,
    createdAt,
  }
  await insertConversion(tx.db, conversion)
  await appendEvents(tx, [
    {
      kind: 'conversion.created',
      workspaceId,
      messageId: conversion.messageId,
      isSandbox,
      occurredAt: createdAt,
      payload: conversionToApi(conversion),
    },
  ])
  tx.onCommit(parts.onEvents)
  return conversion
}

function conversionToApi(conversion: Conversion): Static<typeof ConversionSchema> {
  return {
    id: conversion.id,
    contact_id: conversion.contactId,
    value: conversion.value,
    currency: conversion.currency,
    metadata: { ...conversion.metadata },
    message_id: conversion.messageId,
    campaign_id: conversion.campaignId,
    is_sandbox: conversion.isSandbox,
    created_at: isoTime(conversion.createdAt),
  }
}
