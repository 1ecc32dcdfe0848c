/** SQL for delivery status notifications: reads only what a report needs of the original mail. */
import { sql } from 'kysely'
import type { Queries } from '../../db/database.js'

/** A relayed message, as far as a report needs it. */
export interface SubmittedMail {
  /** Envelope sender; not empty. */
  readonly submitter: string
  readonly ret?: 'FULL' | 'HDRS'
  readonly envid?: string
  /** Its first `atMost` octets. */
  readonly beginning: Buffer
}

/** @returns undefined for mail composed here, our own reports, and mail from `<>` */
export async function findSubmittedMail(
  db: Queries,
  contentId: string,
  atMost: number,
): Promise<SubmittedMail | undefined> {
  const row = await db
    .selectFrom('message_contents')
    .select(['submitter', 'dsn_ret', 'dsn_envid'])
    .select(sql<Uint8Array>`substr(raw, 1, ${sql.lit(atMost)})`.as('beginning'))
    .where('id', '=', contentId)
    .where('raw', 'is not', null)
    .where('submitter', '<>', '')
    .executeTakeFirst()
  if (!row || row.submitter === null) return undefined
  return {
    submitter: row.submitter,
    ...(row.dsn_ret === null ? {} : { ret: row.dsn_ret }),
    ...(row.dsn_envid === null ? {} : { envid: row.dsn_envid }),
    beginning: Buffer.from(row.beginning),
  }
}

export async function hasContent(db: Queries, id: string): Promise<boolean> {
  const row = await db.selectFrom('message_contents').select('id').where('id', '=', id).executeTakeFirst()
  return row !== undefined
}

/** A recipient of a report. */
export interface ReportedRecipient {
  readonly recipient: string
  readonly originalRecipient?: string
}

/** Suppressed recipients of a content whose submitter asked for reports of failures. */
export async function listSuppressedRecipients(
  db: Queries,
  contentId: string,
  atMost: number,
): Promise<ReportedRecipient[]> {
  const rows = await db
    .selectFrom('messages')
    .select(['recipient', 'dsn_orcpt'])
    .where('content_id', '=', contentId)
    .where('status', '=', 'suppressed')
    .where('dsn_notify', 'like', '%FAILURE%')
    .orderBy('id')
    .limit(atMost)
    .execute()
  return rows.map(row => ({
    recipient: row.recipient,
    ...(row.dsn_orcpt === null ? {} : { originalRecipient: row.dsn_orcpt }),
  }))
}
