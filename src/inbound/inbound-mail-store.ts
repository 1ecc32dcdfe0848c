/**
 * SQL of inbound mail: insertion, processing results, removal.
 *
 * A mail is a row and its body in parts of at most 256 KB. All but the last are written while the mail arrives and are
 * ignored until the row exists.
 */
import { sql, type Generated } from 'kysely'
import type { Queries, Tx } from '../db/database.js'
import { statement } from '../db/statement.js'
import { flag, type Flag } from '../db/tables.js'
import { newestFirst, type Listed, type PageOf } from '../db/listing.js'
import type { Purpose } from './inbound-address.js'

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
  /** For a signed address: its message, verified on receipt. */
  readonly messageId?: string
}

export interface NewInboundMail {
  readonly bodyId: string
  /** Ms since epoch UTC. */
  readonly receivedAt: number
  /** SMTP session id, as in the log. */
  readonly session: string
  readonly peerAddress: string
  readonly heloName: string
  /** Empty for `<>`. */
  readonly envelopeSender: string
  readonly recipients: readonly InboundRecipient[]
  /** Octets. */
  readonly size: number
}

/** Whether every recipient is a signed address: only someone who got one of our mails can send such mail. */
export function isSignedMail({ recipients }: Pick<NewInboundMail, 'recipients'>): boolean {
  return recipients.every(({ messageId }) => messageId !== undefined)
}

export interface InboundFinding {
  readonly recipient: string
  readonly result: string
  readonly messageId?: string
  /** Whether a token proves that it is about that message; without one it has no effect. */
  readonly isConfirmed?: boolean
  /** For people; at most 300 characters. */
  readonly detail?: string
}

export interface InboundMail extends NewInboundMail {
  readonly seq: number
  readonly tries: number
  /** Null while unprocessed. */
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

/** @returns its `seq` */
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

export async function insertInboundPart(
  db: Queries,
  bodyId: string,
  part: number,
  octets: Uint8Array,
): Promise<void> {
  await insertPartRow(db, { body_id: bodyId, part, octets })
}

/** Deletes the parts of mail that was abandoned. */
export async function deleteInboundParts(db: Queries, bodyId: string): Promise<void> {
  await db.deleteFrom('inbound_parts').where('body_id', '=', bodyId).execute()
}

/** Deletes the parts of mail whose receipt a crash cut off. @param before as `leftBehindBefore` says */
export async function deleteOrphanedInboundParts(db: Queries, before: string): Promise<void> {
  await db
    .deleteFrom('inbound_parts')
    .where('body_id', '<', before)
    .where('body_id', 'not in', query => query.selectFrom('inbound_mails').select('body_id'))
    .execute()
}

/** Bytes of all mail, processed or not. */
export async function sumInboundOctets(db: Queries): Promise<number> {
  // Each is answered by an index that contains the sizes.
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

/** Unprocessed mails, oldest first. @param isSigned undefined for all */
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

/** The mail or its first `most` bytes, in an unshared buffer. */
export async function readInboundOctets(
  db: Queries,
  { bodyId, size }: Pick<InboundMail, 'bodyId' | 'size'>,
  most = size,
): Promise<Buffer<ArrayBuffer>> {
  const octets = Buffer.alloc(Math.min(size, most))
  let length = 0
  // One by one: a single statement would hold the whole mail twice.
  for (let part = 0; length < octets.length; part += 1) {
    const row = (await selectPart(db, { bodyId, part })).rows[0]
    if (!row) throw new Error(`part ${part} of inbound mail ${bodyId} is missing`)
    const left = octets.length - length
    octets.set(row.octets.length > left ? row.octets.subarray(0, left) : row.octets, length)
    length += Math.min(row.octets.length, left)
  }
  return octets
}

/** The mail, part by part. */
export async function* inboundParts(
  db: Queries,
  { bodyId, size }: Pick<InboundMail, 'bodyId' | 'size'>,
): AsyncGenerator<Uint8Array> {
  let length = 0
  for (let part = 0; length < size; part += 1) {
    const row = (await selectPart(db, { bodyId, part })).rows[0]
    if (!row) throw new Error(`part ${part} of inbound mail ${bodyId} is missing`)
    length += row.octets.length
    yield row.octets
  }
}

const setProcessed = statement(
  (db, { seq, at, result, findings }: { seq: number; at: number; result: string; findings: string }) =>
    db
      .updateTable('inbound_mails')
      .set({ processed_at: at, result, findings })
      .where('seq', '=', seq)
      .where('processed_at', 'is', null),
)

export async function markProcessed(
  db: Queries,
  seq: number,
  at: number,
  findings: readonly InboundFinding[],
): Promise<void> {
  const result = [...new Set(findings.map(finding => finding.result))].join(', ')
  await setProcessed(db, { seq, at, result, findings: JSON.stringify(findings) })
}

/** @returns how many attempts have failed */
export async function countAttempt(db: Queries, seq: number): Promise<number> {
  const row = await db
    .updateTable('inbound_mails')
    .set(e => ({ tries: e('tries', '+', 1) }))
    .where('seq', '=', seq)
    .returning('tries')
    .executeTakeFirst()
  return row?.tries ?? 0
}

/** Makes the server process it again. @returns whether it exists */
export async function markUnprocessed(tx: Tx, seq: number): Promise<boolean> {
  tx.changed('inbound')
  const changed = await tx.db
    .updateTable('inbound_mails')
    .set({ processed_at: null, result: null, findings: null, tries: 0 })
    .where('seq', '=', seq)
    .executeTakeFirst()
  return changed.numUpdatedRows > 0n
}

export interface Removal {
  readonly isSigned: boolean
  /** Only mail processed before this, ms since epoch UTC. */
  readonly before?: number
  readonly limit: number
  /** Stops after this many bytes. */
  readonly octets?: number
}

export interface Removed {
  readonly mails: number
  readonly octets: number
}

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
  readonly result?: string
  readonly isWaiting?: boolean
}

/** Newest first. */
export async function listInboundMails(
  db: Queries,
  { result, isWaiting }: InboundFilter,
  page: PageOf,
): Promise<Listed<InboundMail>> {
  const matching = db
    .selectFrom('inbound_mails')
    .$if(isWaiting === true, q => q.where('processed_at', 'is', null))
    .$if(isWaiting === false, q => q.where('processed_at', 'is not', null))
    .$if(result !== undefined, q =>
      q.where(sql`', ' || result || ','`, 'like', `%, ${(result ?? '').replaceAll(/[%\\]/g, '')},%`),
    )
  return newestFirst(matching, page, row => mailFromRow(row))
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
