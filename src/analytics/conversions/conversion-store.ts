/**
 * SQL of conversions and product views, and the attribution of conversions to messages.
 *
 * Attribution uses an index of opened messages only (a click also marks its message opened), so its cost does not grow with the number of
 * messages.
 */
import type { Generated } from 'kysely'
import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import { deleteOldest } from '../../db/retention.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import { normalizedAddress } from '../../mail/address.js'
import { isSpelled, recipientSpellings, type Spellings } from '../../messages/message-store.js'

interface ConversionRow {
  id: string
  workspace_id: string
  contact_id: string
  value: number
  currency: string
  metadata: string
  message_id: string | null
  campaign_id: string | null
  campaign_variant: number | null
  is_sandbox: Flag
  created_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    conversions: ConversionRow
  }
}

export interface Conversion {
  readonly id: string
  readonly workspaceId: string
  readonly contactId: string
  /** Negative for a refund. */
  readonly value: number
  /** ISO 4217. */
  readonly currency: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly messageId: string | null
  readonly campaignId: string | null
  /** Of the campaign's A/B test, if the message was in its sample. */
  readonly variant: number | null
  readonly isSandbox: boolean
  readonly createdAt: number
}

export async function insertConversion(db: Queries, conversion: Conversion): Promise<void> {
  await db
    .insertInto('conversions')
    .values({
      id: conversion.id,
      workspace_id: conversion.workspaceId,
      contact_id: conversion.contactId,
      value: conversion.value,
      currency: conversion.currency,
      metadata: JSON.stringify(conversion.metadata),
      message_id: conversion.messageId,
      campaign_id: conversion.campaignId,
      campaign_variant: conversion.variant,
      is_sandbox: flag(conversion.isSandbox),
      created_at: conversion.createdAt,
    })
    .execute()
}

/** @returns undefined if it is unknown or another workspace's */
export async function findConversion(
  db: Queries,
  workspaceId: string,
  id: string,
): Promise<Conversion | undefined> {
  const row = await db
    .selectFrom('conversions')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .executeTakeFirst()
  return row && fromRow(row)
}

export interface ConversionFilter {
  readonly contactId?: string
  /** Ms since epoch UTC; `since` is inclusive, `until` exclusive. */
  readonly since?: number
  readonly until?: number
}

/** Newest first. */
export async function listConversions(
  db: Queries,
  workspaceId: string,
  { contactId, since, until }: ConversionFilter,
  page: Page,
): Promise<Listing<Conversion>> {
  let matching = db.selectFrom('conversions').where('workspace_id', '=', workspaceId)
  if (contactId !== undefined) matching = matching.where('contact_id', '=', contactId)
  if (since !== undefined) matching = matching.where('created_at', '>=', since)
  if (until !== undefined) matching = matching.where('created_at', '<', until)
  return newestFirst(matching, page, fromRow, 'id')
}

/** Of one currency. */
export interface Revenue {
  /** ISO 4217. */
  readonly currency: string
  readonly conversions: number
  /** Sum of values, refunds subtracted. */
  readonly value: number
}

/** Conversions attributed to a campaign, highest value first. Reads an index over them all: for `Database.slowReader`. */
export async function sumCampaignRevenue(db: Queries, campaignId: string): Promise<Revenue[]> {
  const rows = await db
    .selectFrom('conversions')
    .select(e => [
      'currency',
      e.fn.countAll<number>().as('conversions'),
      e.fn.sum<number>('value').as('value'),
    ])
    .where('campaign_id', '=', campaignId)
    .groupBy('currency')
    .orderBy('value', 'desc')
    .execute()
  return rows.map(({ currency, conversions, value }) => ({ currency, conversions, value }))
}

/** Of one currency and one variant of an A/B test; null: outside its sample. */
export interface VariantRevenue extends Revenue {
  readonly variant: number | null
}

/** Conversions attributed to a campaign by variant, highest value first. Reads the same index as `sumCampaignRevenue`. */
export async function sumVariantRevenue(db: Queries, campaignId: string): Promise<VariantRevenue[]> {
  const rows = await db
    .selectFrom('conversions')
    .select(e => [
      'campaign_variant',
      'currency',
      e.fn.countAll<number>().as('conversions'),
      e.fn.sum<number>('value').as('value'),
    ])
    .where('campaign_id', '=', campaignId)
    .groupBy(['currency', 'campaign_variant'])
    .orderBy('value', 'desc')
    .execute()
  return rows.map(({ campaign_variant: variant, currency, conversions, value }) => ({
    variant,
    currency,
    conversions,
    value,
  }))
}

export function deleteConversionsBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'conversions', key: 'id', time: 'created_at' }, before, limit)
}

function fromRow(row: ConversionRow): Conversion {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    contactId: row.contact_id,
    value: row.value,
    currency: row.currency,
    metadata: JSON.parse(row.metadata) as Conversion['metadata'],
    messageId: row.message_id,
    campaignId: row.campaign_id,
    variant: row.campaign_variant,
    isSandbox: row.is_sandbox === 1,
    createdAt: row.created_at,
  }
}

interface ProductViewRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  contact_id: string
  product_id: string
  product: string
  is_sandbox: Flag
  viewed_at: number
}

declare module '../../db/tables.js' {
  interface Tables {
    product_views: ProductViewRow
  }
}

export interface ProductView {
  readonly id: string
  readonly workspaceId: string
  readonly contactId: string
  readonly productId: string
  /** Product details in the API's names. */
  readonly product: Readonly<Record<string, unknown>>
  readonly isSandbox: boolean
  readonly viewedAt: number
}

export async function insertProductView(db: Queries, view: ProductView): Promise<void> {
  await db
    .insertInto('product_views')
    .values({
      id: view.id,
      workspace_id: view.workspaceId,
      contact_id: view.contactId,
      product_id: view.productId,
      product: JSON.stringify(view.product),
      is_sandbox: flag(view.isSandbox),
      viewed_at: view.viewedAt,
    })
    .execute()
}

export function deleteProductViewsBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'product_views', key: 'seq', time: 'viewed_at' }, before, limit)
}

export interface Attribution {
  readonly messageId: string
  readonly campaignId: string | null
}

export interface Converted {
  readonly workspaceId: string
  /** The contact's address. */
  readonly email: string
  /** Sandbox mail is only credited with sandbox conversions. */
  readonly isSandbox: boolean
  /** Ms since epoch UTC. */
  readonly convertedAt: number
}

export type FindAttribution = (db: Queries, converted: Converted) => Promise<Attribution | undefined>

const WINDOW_MS = 7 * 86_400_000

/** The message to this address last clicked within seven days, else the one last opened within them. */
export const lastEngagement: FindAttribution = async (db, converted) => {
  const { workspaceId, email } = converted
  const spellings = await recipientSpellings(db, workspaceId, normalizedAddress(email))
  return (
    (await lastOf(db, converted, spellings, 'clicked_at')) ?? lastOf(db, converted, spellings, 'opened_at')
  )
}

async function lastOf(
  db: Queries,
  { workspaceId, isSandbox, convertedAt }: Converted,
  spellings: Spellings,
  moment: 'clicked_at' | 'opened_at',
): Promise<Attribution | undefined> {
  const row = await db
    .selectFrom('messages')
    .select(['id', 'campaign_id'])
    .where('workspace_id', '=', workspaceId)
    .where(isSpelled(spellings))
    .where('opened_at', 'is not', null)
    .where(moment, '>=', convertedAt - WINDOW_MS)
    .where(moment, '<=', convertedAt)
    .where('is_sandbox', '=', flag(isSandbox))
    .orderBy(moment, 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && { messageId: row.id, campaignId: row.campaign_id }
}
