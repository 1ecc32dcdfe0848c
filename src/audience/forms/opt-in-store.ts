/**
 * SQL of opt-ins: submissions pending confirmation by email.
 *
 * Rows are kept until their link expires, to distinguish a link followed twice from an expired one.
 */
import type { Queries } from '../../db/database.js'
import { deleteOldest } from '../../db/retention.js'
import type { FieldValues } from './form.js'

interface OptInRow {
  id: string
  form_id: string
  workspace_id: string
  email: string
  fields: string
  created_at: number
  confirmed_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    opt_ins: OptInRow
  }
}

export interface OptIn {
  readonly id: string
  readonly formId: string
  readonly workspaceId: string
  /** Normalized (`normalizedAddress`). */
  readonly email: string
  readonly fields: FieldValues
  readonly createdAt: number
}

export async function insertOptIn(db: Queries, optIn: OptIn): Promise<void> {
  await db
    .insertInto('opt_ins')
    .values({
      id: optIn.id,
      form_id: optIn.formId,
      workspace_id: optIn.workspaceId,
      email: optIn.email,
      fields: JSON.stringify(optIn.fields),
      created_at: optIn.createdAt,
      confirmed_at: null,
    })
    .execute()
}

export async function findOptIn(
  db: Queries,
  id: string,
): Promise<(OptIn & { readonly isConfirmed: boolean }) | undefined> {
  const row = await db.selectFrom('opt_ins').selectAll().where('id', '=', id).executeTakeFirst()
  return (
    row && {
      id: row.id,
      formId: row.form_id,
      workspaceId: row.workspace_id,
      email: row.email,
      fields: JSON.parse(row.fields) as FieldValues,
      createdAt: row.created_at,
      isConfirmed: row.confirmed_at !== null,
    }
  )
}

/** Clears the submitted fields, which the contact now has. @returns false if it was already confirmed */
export async function markConfirmed(db: Queries, id: string, at: number): Promise<boolean> {
  const result = await db
    .updateTable('opt_ins')
    .set({ confirmed_at: at, fields: '{}' })
    .where('id', '=', id)
    .where('confirmed_at', 'is', null)
    .executeTakeFirst()
  return result.numUpdatedRows > 0n
}

/** Opt-ins since a moment, newest first. @param email normalized */
export async function recentOptIns(
  db: Queries,
  workspaceId: string,
  email: string,
  since: number,
): Promise<{ readonly formId: string; readonly createdAt: number }[]> {
  const rows = await db
    .selectFrom('opt_ins')
    .select(['form_id', 'created_at'])
    .where('workspace_id', '=', workspaceId)
    .where('email', '=', email)
    .where('created_at', '>', since)
    .orderBy('created_at', 'desc')
    .limit(50)
    .execute()
  return rows.map(row => ({ formId: row.form_id, createdAt: row.created_at }))
}

/** @returns rows deleted */
export function deleteOptInsBefore(db: Queries, before: number, limit: number): Promise<number> {
  return deleteOldest(db, { table: 'opt_ins', key: 'id', time: 'created_at' }, before, limit)
}
