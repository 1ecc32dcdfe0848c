/**
 * SQL of inbound mail: as it arrived, what became of it, and its removal.
 *
 * A mail is a small row and its octets in parts of at most 256 KB, of which all but the last are written while the rest
 * still arrives and are worth nothing before the row exists.
 */
import { sql, type Generated } from 'kysely'
import type { Queries } from '../db/database.js'
import { statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import type { Page } from '../http/pagination.js'
import type { Purpose } from './intake/inbound-address.js'

interface InboundMailRow {
  seq: Generated<number>
  body_id: string
  received_at: number
  session: string
  peer_address: string
  helo_name: string
  envelope_sender: string
  recipients: string
  size: number
  tries: number
  processed_at: number | null
  result: string | null
  findings: string | null
  is_signed: Flag
}

interface InboundPartRow {
  body_id: string
  part: number
  octets: Uint8Array
}

declare module '../db/tables.js' {
  interface Tables {
    inbound_mails: InboundMailRow
    inbound_parts: InboundPartRow
  }
}

export interface InboundRecipient {
  readonly address: string
  readonly purpose: Purpose
  /** Of a signed address: the message that it was made for, verified when the mail came. */
  readonly messageId?: string
}

export interface NewInboundMail {
  readonly bodyId: string
  /** Ms since epoch UTC. */
  readonly receivedAt: number
  /** Id of the SMTP session, as in the log. */
  readonly session: string
  readonly peerAddress: string
  readonly heloName: string
  /** Empty for `<>`. */
  readonly envelopeSender: string
  readonly recipients: readonly InboundRecipient[]
  /** Octets. */
  readonly size: number
}

/** Whether it came to signed addresses only: nobody could send it who did not have a mail of ours. */
export function isSignedMail({ recipients }: Pick<NewInboundMail, 'recipients'>): boolean {
  return recipients.every(({ messageId }) => messageId !== undefined)
}

/** What one recipient's mail came to. */
export interface InboundFinding {
  readonly recipient: string
  /** E.g. `bounce`, `complaint`, `forged`; see `results.ts`. */
  readonly result: string
  readonly messageId?: string
  /** Whether a token of ours proves that it is about that message; without one nothing follows. */
  readonly isConfirmed?: boolean
  /** For people: why, or what exactly. At most 300 characters. */
  readonly detail?: string
}

export interface InboundMail extends NewInboundMail {
  readonly seq: number
  readonly tries: number
  /** Null while it waits. */
  readonly processedAt: number | null
  readonly result: string | null
  readonly findings: readonly InboundFinding[]
}

const insertRow = statement((db, row: Record<keyof Omit<InboundMailRow, 'seq'>, unknown>) =>
  db
    .insertInto('inbound_mails')
    .values(row as Omit<InboundMailRow, 'seq'>)
    .returning('seq'),
)

/** @returns its number */
export async function insertInboundMail(db: Queries, mail: NewInboundMail): Promise<number> {
  const result = await insertRow(db, {
    body_id: mail.bodyId,
    received_at: mail.receivedAt,
    session: mail.session,
    peer_address: mail.peerAddress,
    helo_name: mail.heloName,
    envelope_sender: mail.envelopeSender,
    recipients: JSON.stringify(mail.recipients),
    size: mail.size,
    tries: 0,
    processed_at: null,
    result: null,
    findings: null,
    is_signed: flag(isSignedMail(mail)),
  })
  return (result.rows[0] as { seq: number }).seq
}

const insertPartRow = statement((db, row: { body_id: string; part: number; octets: Uint8Array }) =>
  db.insertInto('inbound_parts').values(row),
)

/** @param part from 0 */
export async function insertInboundPart(
  db: Queries,
  bodyId: string,
  part: number,
  octets: Uint8Array,
): Promise<void> {
  await insertPartRow(db, { body_id: bodyId, part, octets })
}

/** Of mail that was given up before its end. */
export async function deleteInboundParts(db: Queries, bodyId: string): Promise<void> {
  await db.deleteFrom('inbound_parts').where('body_id', '=', bodyId).execute()
}

/** Of mail whose arrival a crash cut off. Call it before anything is received. */
export async function deleteOrphanedInboundParts(db: Queries): Promise<void> {
  await db
    .deleteFrom('inbound_parts')
    .where('body_id', 'not in', query => query.selectFrom('inbound_mails').select('body_id'))
    .execute()
}

/** Octets of all mail, read or waiting. */
export async function sumInboundOctets(db: Queries): Promise<number> {
  // One for each index, which has the sizes.
  let total = 0
  for (const condition of ['is', 'is not'] as const) {
    const { octets } = await db
      .selectFrom('inbound_mails')
      .select(e => e.fn.sum<number | string | null>('size').as('octets'))
      .where('processed_at', condition, null)
      .executeTakeFirstOrThrow()
    total += Number(octets ?? 0)
  }
  return total
}

/** The next mails that wait, oldest first: those that are signed or those that are not; or all. */
export async function findWaitingMails(
  db: Queries,
  limit: number,
  isSigned?: boolean,
): Promise<InboundMail[]> {
  const rows = await db
    .selectFrom('inbound_mails')
    .selectAll()
    .where('processed_at', 'is', null)
    .$if(isSigned !== undefined, q => q.where('is_signed', '=', flag(isSigned === true)))
    .orderBy('seq')
    .limit(limit)
    .execute()
  return rows.map(mailFromRow)
}

const selectPart = statement<{ bodyId: string; part: number }, { octets: Uint8Array }>(
  (db, { bodyId, part }) =>
    db.selectFrom('inbound_parts').select('octets').where('body_id', '=', bodyId).where('part', '=', part),
)

/** The mail, or its first `most` octets; in memory of its own. */
export async function readInboundOctets(
  db: Queries,
  { bodyId, size }: Pick<InboundMail, 'bodyId' | 'size'>,
  most = size,
): Promise<Buffer<ArrayBuffer>> {
  const octets = Buffer.alloc(Math.min(size, most))
  let length = 0
  // One by one: a statement that returned them all would hold the whole mail a second time.
  for (let part = 0; length < octets.length; part += 1) {
    const row = (await selectPart(db, { bodyId, part })).rows[0]
    if (!row) throw new Error(`part ${part} of inbound mail ${bodyId} is missing`)
    const left = octets.length - length
    octets.set(row.octets.length > left ? row.octets.subarray(0, left) : row.octets, length)
    length += Math.min(row.octets.length, left)
  }
  return octets
}

const setProcessed = statement(
  (db, { seq, at, result, findings }: { seq: number; at: number; result: string; findings: string }) =>
    db
      .updateTable('inbound_mails')
      .set({ processed_at: at, result, findings })
      .where('seq', '=', seq)
      .where('processed_at', 'is', null),
)

/** In the transaction of what it brought about. */
export async function markProcessed(
  db: Queries,
  seq: number,
  at: number,
  findings: readonly InboundFinding[],
): Promise<void> {
  const result = [...new Set(findings.map(finding => finding.result))].join(', ')
  await setProcessed(db, { seq, at, result, findings: JSON.stringify(findings) })
}

/** @returns how often its reading has failed now */
export async function countAttempt(db: Queries, seq: number): Promise<number> {
  const row = await db
    .updateTable('inbound_mails')
    .set(e => ({ tries: e('tries', '+', 1) }))
    .where('seq', '=', seq)
    .returning('tries')
    .executeTakeFirst()
  return row?.tries ?? 0
}

/** Has it read anew by the server. @returns whether there is such a mail */
export async function markUnprocessed(db: Queries, seq: number): Promise<boolean> {
  const changed = await db
    .updateTable('inbound_mails')
    .set({ processed_at: null, result: null, findings: null, tries: 0 })
    .where('seq', '=', seq)
    .executeTakeFirst()
  return changed.numUpdatedRows > 0n
}

export interface Removal {
  readonly isSigned: boolean
  /** Processed before, ms since epoch UTC; absent: whenever. */
  readonly before?: number
  /** Mails at most. */
  readonly limit: number
  /** As soon as so many octets are reached it is enough; absent: never. */
  readonly octets?: number
}

export interface Removed {
  readonly mails: number
  readonly octets: number
}

/** Of mail that was processed, the oldest. */
export async function deleteProcessed(db: Queries, removal: Removal): Promise<Removed> {
  const { isSigned, before = Number.MAX_SAFE_INTEGER, limit, octets: most = Infinity } = removal
  const rows = await db
    .selectFrom('inbound_mails')
    .select(['seq', 'body_id', 'size'])
    .where('is_signed', '=', flag(isSigned))
    .where('processed_at', '<', before)
    .orderBy('processed_at')
    .limit(limit)
    .execute()
  let octets = 0
  const end = rows.findIndex(({ size }) => (octets += size) >= most)
  const removed = end < 0 ? rows : rows.slice(0, end + 1)
  if (removed.length === 0) return { mails: 0, octets: 0 }
  const bodies = removed.map(row => row.body_id)
  const numbers = removed.map(row => row.seq)
  await db.deleteFrom('inbound_parts').where('body_id', 'in', bodies).execute()
  await db.deleteFrom('inbound_mails').where('seq', 'in', numbers).execute()
  return { mails: removed.length, octets }
}

export interface InboundFilter {
  /** One of the results, e.g. `forged`. */
  readonly result?: string
  readonly isWaiting?: boolean
}

/** Newest first. */
export async function listInboundMails(
  db: Queries,
  filter: InboundFilter,
  page: Page,
): Promise<InboundMail[]> {
  const { result, isWaiting } = filter
  const rows = await db
    .selectFrom('inbound_mails')
    .selectAll()
    .$if(isWaiting === true, q => q.where('processed_at', 'is', null))
    .$if(result !== undefined, q =>
      q.where(sql`', ' || result || ','`, 'like', `%, ${(result ?? '').replaceAll(/[%\\]/g, '')},%`),
    )
    .orderBy('seq', 'desc')
    .limit(page.limit)
    .offset(page.offset)
    .execute()
  return rows.map(mailFromRow)
}

export async function findInboundMail(db: Queries, seq: number): Promise<InboundMail | undefined> {
  const row = await db.selectFrom('inbound_mails').selectAll().where('seq', '=', seq).executeTakeFirst()
  return row && mailFromRow(row)
}

function mailFromRow(row: Omit<InboundMailRow, 'seq'> & { seq: number }): InboundMail {
  return {
    seq: row.seq,
    bodyId: row.body_id,
    receivedAt: row.received_at,
    session: row.session,
    peerAddress: row.peer_address,
    heloName: row.helo_name,
    envelopeSender: row.envelope_sender,
    recipients: JSON.parse(row.recipients) as InboundRecipient[],
    size: row.size,
    tries: row.tries,
    processedAt: row.processed_at,
    result: row.result,
    findings: row.findings === null ? [] : (JSON.parse(row.findings) as InboundFinding[]),
  }
}
