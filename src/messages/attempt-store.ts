/** SQL of the attempt log: one row per delivery attempt, deleted with its message. */
import { sql, type Generated, type Insertable } from 'kysely'
import type { Queries } from '../db/database.js'
import { inLists, inPieces, statement } from '../db/statement.js'
import type { Classification, HostTried, Outcome } from '../mail/outcome.js'

interface AttemptRow {
  seq: Generated<number>
  message_id: string
  number: number
  started_at: number
  finished_at: number
  kind: Outcome['kind']
  summary: string
  reply_code: number | null
  status: string | null
  /** JSON Classification. */
  classification: string | null
  /** JSON HostTried[]. */
  tried: string
}

declare module '../db/tables.js' {
  interface Tables {
    attempts: AttemptRow
  }
}

export interface Attempt {
  readonly messageId: string
  readonly number: number
  readonly startedAt: number
  readonly finishedAt: number
  readonly kind: Outcome['kind']
  readonly summary: string
  readonly replyCode: number | null
  readonly status: string | null
  readonly classification: Classification | null
  readonly tried: readonly HostTried[]
}

const insertRows = statement((db, { rows }: { rows: readonly Insertable<AttemptRow>[] }) =>
  db.insertInto('attempts').values(rows),
)

export async function insertAttempts(db: Queries, attempts: readonly Attempt[]): Promise<void> {
  const rows = attempts.map(attempt => ({
    message_id: attempt.messageId,
    number: attempt.number,
    started_at: attempt.startedAt,
    finished_at: attempt.finishedAt,
    kind: attempt.kind,
    summary: attempt.summary,
    reply_code: attempt.replyCode,
    status: attempt.status,
    classification: attempt.classification ? JSON.stringify(attempt.classification) : null,
    tried: JSON.stringify(attempt.tried),
  }))
  for (const piece of inPieces(rows)) await insertRows(db, { rows: piece })
}

/** Those of the attempts that are recorded. */
export async function findRecorded(
  db: Queries,
  attempts: readonly Pick<Attempt, 'messageId' | 'number'>[],
): Promise<(one: Pick<Attempt, 'messageId' | 'number'>) => boolean> {
  const keyOf = ({ messageId, number }: Pick<Attempt, 'messageId' | 'number'>) => `${messageId} ${number}`
  const found = new Set<string>()
  for (const list of inLists(attempts.map(({ messageId }) => messageId))) {
    const rows = await db
      .selectFrom('attempts')
      .select(['message_id as messageId', 'number'])
      .where('message_id', 'in', list)
      .execute()
    for (const row of rows) found.add(keyOf(row))
  }
  return one => found.has(keyOf(one))
}

/** In a query of `messages`: 1 if the message was kept in the local inbox instead of sent, so that its delivery tried no host. */
export const isCapturedMessage = sql<0 | 1>`case when messages.delivered_at is not null and exists (
  select 1 from attempts where attempts.message_id = messages.id and attempts.kind = 'delivered' and attempts.tried = '[]'
) then 1 else 0 end`

/** Oldest first. */
export async function listAttempts(db: Queries, messageId: string): Promise<Attempt[]> {
  return listAttemptsOf(db, [messageId])
}

/** At most a hundred messages; oldest first over all of them. */
export async function listAttemptsOf(db: Queries, messageIds: readonly string[]): Promise<Attempt[]> {
  if (messageIds.length === 0) return []
  const rows = await db
    .selectFrom('attempts')
    .selectAll()
    .where('message_id', 'in', messageIds)
    .orderBy('seq')
    .execute()
  return rows.map(row => ({
    messageId: row.message_id,
    number: row.number,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
    kind: row.kind,
    summary: row.summary,
    replyCode: row.reply_code,
    status: row.status,
    classification: row.classification === null ? null : (JSON.parse(row.classification) as Classification),
    tried: JSON.parse(row.tried) as HostTried[],
  }))
}
