/**
 * SQL of forms and of opt-ins, the submissions pending confirmation by email.
 *
 * Deleted forms are kept, so that their page can say that the form is closed. Opt-ins are kept until their link expires, to distinguish a
 * link followed twice from an expired one.
 */
import type { Insertable, Selectable } from 'kysely'
import type { Queries } from '../../db/database.js'
import { newestFirst } from '../../db/listing.js'
import { deleteOldest } from '../../db/retention.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { FieldValues, Form, FormContent, FormField } from './form.js'

interface FormRow {
  id: string
  workspace_id: string
  name: string
  title: string | null
  description: string | null
  list_ids: string
  fields: string
  redirect_url: string | null
  double_opt_in: Flag
  created_at: number
  updated_at: number
  deleted_at: number | null
}

declare module '../../db/tables.js' {
  interface Tables {
    forms: FormRow
  }
}

export async function insertForm(db: Queries, form: Form): Promise<void> {
  await db
    .insertInto('forms')
    .values({
      id: form.id,
      workspace_id: form.workspaceId,
      created_at: form.createdAt,
      updated_at: form.updatedAt,
      deleted_at: null,
      ...contentToRow(form),
    })
    .execute()
}

export async function updateForm(db: Queries, form: Form): Promise<void> {
  await db
    .updateTable('forms')
    .set({ ...contentToRow(form), updated_at: form.updatedAt })
    .where('id', '=', form.id)
    .execute()
}

/** @returns undefined for unknown and deleted forms, and those of other workspaces */
export async function findForm(db: Queries, workspaceId: string, id: string): Promise<Form | undefined> {
  const row = await db
    .selectFrom('forms')
    .selectAll()
    .where('id', '=', id)
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst()
  return row && fromRow(row)
}

/** For public pages; finds deleted forms too. */
export async function findAnyForm(
  db: Queries,
  id: string,
): Promise<{ readonly form: Form; readonly isDeleted: boolean } | undefined> {
  const row = await db.selectFrom('forms').selectAll().where('id', '=', id).executeTakeFirst()
  return row && { form: fromRow(row), isDeleted: row.deleted_at !== null }
}

/** Forms that add subscribers to the list. */
export async function findFormsOfList(db: Queries, workspaceId: string, listId: string): Promise<Form[]> {
  const rows = await db
    .selectFrom('forms')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('list_ids', 'like', `%"${listId}"%`)
    .where('deleted_at', 'is', null)
    .execute()
  return rows.map(fromRow)
}

/** Newest first. */
export async function listForms(db: Queries, workspaceId: string, page: Page): Promise<Listing<Form>> {
  const live = db.selectFrom('forms').where('workspace_id', '=', workspaceId).where('deleted_at', 'is', null)
  return newestFirst(live, page, fromRow, 'id')
}

export async function markFormDeleted(db: Queries, id: string, at: number): Promise<void> {
  await db.updateTable('forms').set({ deleted_at: at }).where('id', '=', id).execute()
}

function contentToRow(
  form: FormContent,
): Omit<Insertable<FormRow>, 'id' | 'workspace_id' | 'created_at' | 'updated_at' | 'deleted_at'> {
  return {
    name: form.name,
    title: form.title,
    description: form.description,
    list_ids: JSON.stringify(form.listIds),
    fields: JSON.stringify(form.fields),
    redirect_url: form.redirectUrl,
    double_opt_in: flag(form.doubleOptIn),
  }
}

function fromRow(row: Selectable<FormRow>): Form {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    title: row.title,
    description: row.description,
    listIds: JSON.parse(row.list_ids) as string[],
    fields: JSON.parse(row.fields) as FormField[],
    redirectUrl: row.redirect_url,
    doubleOptIn: row.double_opt_in === 1,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }
}

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
