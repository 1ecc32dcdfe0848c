/** SQL of the local inbox that `mta.capture` writes to instead of sending: the last thousand mails. */
import { sql, type Generated, type Selectable } from 'kysely'
import type { Queries } from '../db/database.js'
import { likeText } from '../db/folded-words.js'
import { keysetPageOf } from '../db/listing.js'
import type { Listing, Page } from '../http/pagination.js'

interface CapturedMailRow {
  seq: Generated<number>
  message_id: string
  captured_at: number
  envelope_sender: string
  recipient: string
  subject: string
  size: number
  raw: Uint8Array
}

declare module '../db/tables.js' {
  interface Tables {
    captured_mails: CapturedMailRow
  }
}

const KEPT_MAILS = 1_000

export interface CapturedMail {
  readonly messageId: string
  readonly capturedAt: number
  readonly envelopeSender: string
  readonly recipient: string
  readonly subject: string
  /** The mail as it would have been sent, DKIM signature included. */
  readonly raw: Uint8Array
}

export type CapturedMailHead = Omit<CapturedMail, 'raw'> & { readonly id: number; readonly size: number }

export async function insertCapturedMails(db: Queries, mails: readonly CapturedMail[]): Promise<void> {
  if (mails.length === 0) return
  await db
    .insertInto('captured_mails')
    .values(
      mails.map(mail => ({
        message_id: mail.messageId,
        captured_at: mail.capturedAt,
        envelope_sender: mail.envelopeSender,
        recipient: mail.recipient,
        subject: mail.subject,
        size: mail.raw.length,
        raw: mail.raw,
      })),
    )
    .execute()
  const newest = await db
    .selectFrom('captured_mails')
    .select(e => e.fn.max('seq').as('seq'))
    .executeTakeFirst()
  await db
    .deleteFrom('captured_mails')
    .where('seq', '<=', (newest?.seq ?? 0) - KEPT_MAILS)
    .execute()
}

/**
 * Newest first.
 *
 * @param search only mails whose recipient or subject contains each of its words; case-insensitive for ASCII
 */
export async function listCapturedMails(
  db: Queries,
  page: Page,
  search = '',
): Promise<Listing<CapturedMailHead>> {
  let matching = db.selectFrom('captured_mails')
  for (const word of search.toLowerCase().split(/\s+/).filter(Boolean)) {
    const pattern = `%${likeText(word)}%`
    matching = matching.where(
      sql<boolean>`(lower(recipient) like ${pattern} escape '!' or lower(subject) like ${pattern} escape '!')`,
    )
  }
  const heads = matching.select([
    'seq',
    'message_id',
    'captured_at',
    'envelope_sender',
    'recipient',
    'subject',
    'size',
  ])
  const order = { columns: ['seq'], kinds: ['number'], direction: 'desc' } as const
  return keysetPageOf(matching, heads, order, page, row => ({ ...envelopeFrom(row), size: row.size }))
}

/** @returns how many */
export async function deleteCapturedMails(db: Queries): Promise<number> {
  const { numDeletedRows } = await db.deleteFrom('captured_mails').executeTakeFirst()
  return Number(numDeletedRows)
}

/** @param id id of the captured mail or of its message */
export async function findCapturedMail(
  db: Queries,
  id: string,
): Promise<(CapturedMail & { id: number }) | undefined> {
  const row = await db
    .selectFrom('captured_mails')
    .selectAll()
    .where(e => (/^\d{1,15}$/.test(id) ? e('seq', '=', Number(id)) : e('message_id', '=', id)))
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst()
  return row && { ...envelopeFrom(row), raw: row.raw }
}

function envelopeFrom(row: Omit<Selectable<CapturedMailRow>, 'raw' | 'size'>) {
  return {
    id: row.seq,
    messageId: row.message_id,
    capturedAt: row.captured_at,
    envelopeSender: row.envelope_sender,
    recipient: row.recipient,
    subject: row.subject,
  }
}
