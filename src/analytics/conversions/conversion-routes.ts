/**
 * Routes of conversions and product views, which shops report about contacts, with the checks that a schema cannot express.
 */
import Type, { type Static } from 'typebox'
import { findActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { appendEvents } from '../../events/store.js'
import { Id, IdOrNull, Moment } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import type { Principal } from '../../http/principal.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { readTimeRange, timeRangeQuery } from '../../http/time-range.js'
import { parseAddress } from '../../mail/address.js'
import {
  type Conversion,
  type FindAttribution,
  findConversion,
  insertConversion,
  insertProductView,
  listConversions,
  type ProductView,
} from './conversion-store.js'

export interface Contact {
  readonly id: string
  readonly email: string
}

/** A contact of this workspace that is not deleted. Addresses compare case-insensitively. */
export type FindContact = (
  db: Queries,
  workspaceId: string,
  by: { readonly id: string } | { readonly email: string },
) => Promise<Contact | undefined>

const Currency = Type.String({ minLength: 3, maxLength: 3, description: 'ISO 4217, e.g. EUR.' })

/** Above any price; a double is exact to the cent up to here. */
const MAX_MONEY = 1_000_000_000_000

const Money = (description: string) => Type.Number({ minimum: -MAX_MONEY, maximum: MAX_MONEY, description })

const Metadata = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Any further data, at most 8 KB as JSON and 32 levels deep.',
})

const CURRENCIES = new Set(Intl.supportedValuesOf('currency'))

/** @returns the code in upper case */
function checkCurrency(text: string): string {
  const currency = text.toUpperCase()
  if (!CURRENCIES.has(currency))
    throw new AppError('validation_error', 'currency is not an ISO 4217 code such as EUR', {
      path: 'currency',
    })
  return currency
}

const MAX_METADATA = 8 * 1_024
const MAX_NESTING = 32

function checkMetadata(metadata: Readonly<Record<string, unknown>>): void {
  // Checked first: JSON.stringify would overflow the stack on deeper nesting.
  const isFlat = isNestedWithin(metadata, MAX_NESTING)
  if (isFlat && Buffer.byteLength(JSON.stringify(metadata)) <= MAX_METADATA) return
  throw new AppError(
    'validation_error',
    isFlat ? 'metadata is larger than 8 KB' : `metadata is nested deeper than ${MAX_NESTING} levels`,
    { path: 'metadata' },
  )
}

function isNestedWithin(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(inner => isNestedWithin(inner, levels - 1))
}

export interface ConversionParts extends Pick<Services, 'database' | 'clock' | 'newId' | 'onEvents'> {
  readonly findContact: FindContact
  readonly findAttribution: FindAttribution
  /** The variant of an A/B test that a campaign's message is; null: it is not in a sample. */
  readonly findVariant: (db: Queries, messageId: string) => Promise<number | null>
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
        if (contactId === NO_CONTACT) return { items: [], total: 0, end: undefined }
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
  const contact = isUuid(body.contact_id)
    ? await parts.findContact(tx.db, workspaceId, { id: body.contact_id.toLowerCase() })
    : undefined
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
    variant: attribution?.campaignId ? await parts.findVariant(tx.db, attribution.messageId) : null,
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

export interface ProductViewParts extends Pick<Services, 'database' | 'clock' | 'newId' | 'onEvents'> {
  readonly findContact: FindContact
}

declare module '../../events/event.js' {
  interface ContactEvents {
    'product.viewed': ContactEventOf<
      'product.viewed',
      { readonly contactId: string; readonly productId: string }
    >
  }
}

const Url = (description: string) => Type.String({ minLength: 1, maxLength: 2_048, description })

const product = {
  product_name: Type.Optional(Type.String({ maxLength: 500 })),
  product_url: Type.Optional(Url('URL of the product page, http or https.')),
  image_url: Type.Optional(Url('URL of the product image, http or https.')),
  price: Type.Optional(Money('Price in `currency`.')),
  currency: Type.Optional(Currency),
  category: Type.Optional(Type.String({ maxLength: 500 })),
  metadata: Type.Optional(Metadata),
}

const ProductId = Type.String({ minLength: 1, maxLength: 255, description: "The shop's product id." })

export function productViewRoute(parts: ProductViewParts): Route {
  const { database, clock, newId, findContact, onEvents } = parts
  return route({
    method: 'POST',
    path: '/track/product-view',
    access: 'tracking:write',
    operationId: 'trackProductView',
    chapter: 'Conversions',
    summary: 'Record a product view.',
    body: Type.Object(
      {
        contact_email: Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' }),
        product_id: ProductId,
        ...product,
      },
      { additionalProperties: false, title: 'NewProductView' },
    ),
    response: Type.Object(
      {
        id: Id(),
        contact_id: Id(),
        product_id: ProductId,
        ...product,
        is_sandbox: Type.Boolean(),
        viewed_at: Moment(),
      },
      { title: 'ProductView' },
    ),
    status: 201,
    // There is no route for a single view; it appears in the contact's timeline.
    location: ({ contact_id: id }: { readonly contact_id: string }) => `/contacts/${id}/timeline`,
    errors: ['contact_not_found'],
    async handle({ principal: { workspaceId, isSandbox }, body }) {
      const { contact_email: email, product_id: productId, ...told } = body
      if (!parseAddress(email)) throw refusal('contact_email', 'is not an email address')
      for (const name of ['product_url', 'image_url'] as const) checkUrl(told[name], name)
      if (productId.includes('\0')) throw refusal('product_id', 'must not contain NUL')
      if (told.metadata) checkMetadata(told.metadata)
      const product = told.currency === undefined ? told : { ...told, currency: checkCurrency(told.currency) }
      const view = await database.write(async (tx): Promise<ProductView> => {
        const contact = await findContact(tx.db, workspaceId, { email })
        if (!contact)
          throw new AppError('contact_not_found', 'no contact has this address', { path: 'contact_email' })
        const viewedAt = clock.now()
        const head = { workspaceId, isSandbox, contactId: contact.id, productId }
        const seen = { ...head, id: newId(), product, viewedAt }
        await insertProductView(tx.db, seen)
        await appendEvents(tx, [
          {
            kind: 'product.viewed',
            workspaceId,
            messageId: null,
            isSandbox,
            occurredAt: viewedAt,
            payload: { contactId: contact.id, productId },
          },
        ])
        tx.onCommit(onEvents)
        return seen
      })
      return {
        id: view.id,
        contact_id: view.contactId,
        product_id: productId,
        ...product,
        is_sandbox: isSandbox,
        viewed_at: isoTime(view.viewedAt),
      }
    },
  })
}

function checkUrl(text: string | undefined, path: string): void {
  if (text === undefined) return
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw refusal(path, 'is not an http or https URL')
}

function refusal(path: string, fault: string): AppError {
  return new AppError('validation_error', `${path} ${fault}`, { path })
}
