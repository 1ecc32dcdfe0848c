import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import { deleteOldest } from '../../db/retention.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'

interface ConversionRow {
  id: string
  workspace_id: string
  contact_id: string
  value: number
  currency: string
  metadata: string
  message_id: string | null
  campaign_id: string | null
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
    isSandbox: row.is_sandbox === 1,
    createdAt: row.created_at,
  }
}
