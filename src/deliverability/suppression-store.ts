/**
 * SQL of suppressions: addresses, or whole domains as `@example.com`, that a workspace's mail no longer goes to.
 *
 * Checked at acceptance; what writes them is the recipient's own refusal, complaint or wish, or a person's hand.
 */
import type { Generated } from 'kysely'
import type { Queries } from '../db/database.js'
import type { Page } from '../http/pagination.js'

export type SuppressionReason = 'hard_bounce' | 'complaint' | 'unsubscribe' | 'manual'
/** `all` stops every mail; `marketing` stops campaigns and automations, never single or batch sends. */
export type SuppressionScope = 'all' | 'marketing'

interface SuppressionRow {
  seq: Generated<number>
  workspace_id: string
  email: string
  reason: SuppressionReason
  scope: SuppressionScope
  source_message_id: string | null
  created_at: number
}

declare module '../db/tables.js' {
  interface Tables {
    suppressions: SuppressionRow
  }
}

export interface Suppression {
  readonly workspaceId: string
  /** Lower case; `@example.com` for a whole domain. */
  readonly email: string
  readonly reason: SuppressionReason
  readonly scope: SuppressionScope
  readonly sourceMessageId: string | null
  readonly createdAt: number
}

/** @returns false where the address was suppressed already; that entry stays as it was */
export async function insertSuppression(db: Queries, suppression: Suppression): Promise<boolean> {
  const result = await db
    .insertInto('suppressions')
    .values({
      workspace_id: suppression.workspaceId,
      email: suppression.email,
      reason: suppression.reason,
      scope: suppression.scope,
      source_message_id: suppression.sourceMessageId,
      created_at: suppression.createdAt,
    })
    .onConflict(conflict => conflict.columns(['workspace_id', 'email']).doNothing())
    .executeTakeFirst()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

/**
 * Which of these addresses are suppressed for mail of every kind.
 *
 * @param emails lower case
 */
export async function findSuppressed(
  db: Queries,
  workspaceId: string,
  emails: readonly string[],
): Promise<Set<string>> {
  if (emails.length === 0) return new Set()
  const domainEntry = (email: string) => email.slice(email.lastIndexOf('@'))
  const rows = await db
    .selectFrom('suppressions')
    .select('email')
    .where('workspace_id', '=', workspaceId)
    .where('scope', '=', 'all')
    .where('email', 'in', [...new Set([...emails, ...emails.map(domainEntry)])])
    .execute()
  const entries = new Set(rows.map(row => row.email))
  return new Set(emails.filter(email => entries.has(email) || entries.has(domainEntry(email))))
}

/** @returns whether there was one */
export async function deleteSuppression(db: Queries, workspaceId: string, email: string): Promise<boolean> {
  const result = await db
    .deleteFrom('suppressions')
    .where('workspace_id', '=', workspaceId)
    .where('email', '=', email)
    .executeTakeFirst()
  return result.numDeletedRows > 0n
}

/** Newest first. */
export async function listSuppressions(db: Queries, workspaceId: string, page: Page): Promise<Suppression[]> {
  const rows = await db
    .selectFrom('suppressions')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('seq', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute()
  return rows.map(row => ({
    workspaceId: row.workspace_id,
    email: row.email,
    reason: row.reason,
    scope: row.scope,
    sourceMessageId: row.source_message_id,
    createdAt: row.created_at,
  }))
}
