/**
 * SQL of the mail totals: the fate of all mail ever accepted, counted once per message, by workspace.
 *
 * Changed in the transaction of what is counted, so that at every commit
 *
 *   accepted = delivered + bounced + failed + cancelled + suppressed + waiting
 *
 * where `waiting` is not a counter: it is the number of rows in the queue. A message moves from `delivered` to `bounced` if it is returned
 * later. Retention does not change totals. Sandbox mail is not counted.
 */
import { sql } from 'kysely'
import { dialectOf, type Queries } from '../db/database.js'
import { inPieces, statement, type Rows } from '../db/statement.js'
import type { MessageHead } from './message-status-store.js'
import type { TransitionKind } from './message-status.js'

const RESULTS = ['delivered', 'bounced', 'failed', 'cancelled', 'suppressed'] as const
type Result = (typeof RESULTS)[number]
const COUNTERS = ['accepted', ...RESULTS] as const
type Counter = (typeof COUNTERS)[number]

interface MailTotalsRow extends Record<Counter, number> {
  workspace_id: string
  part: number
}

declare module '../db/tables.js' {
  interface Tables {
    mail_totals: MailTotalsRow
  }
}

/** Rows a workspace has at most. */
const PARTS = 32

/** A connection's own row: two transactions that add to one row at once would conflict. */
function partOf(db: Queries) {
  return dialectOf(db) === 'postgres' ? sql`pg_backend_pid() % ${sql.lit(PARTS)}` : sql`0`
}

const addRows = statement(
  (db, { rows }: Rows) =>
    sql`insert into mail_totals (workspace_id, part, ${sql.join(COUNTERS.map(name => sql.ref(name)))})
      values ${sql.join(rows.map(([workspaceId, ...counts]) => sql`(${workspaceId}, ${partOf(db)}, ${sql.join(counts)})`))}
      on conflict (workspace_id, part) do update set ${sql.join(
        COUNTERS.map(
          name => sql`${sql.ref(name)} = mail_totals.${sql.ref(name)} + ${sql.ref(`excluded.${name}`)}`,
        ),
      )}`,
)

/** Changes of the totals in one transaction, written together. */
export class TotalsChange {
  private readonly byWorkspace = new Map<string, Record<Counter, number>>()

  /** @param messages queued; negative if they are deleted with everything that counted them */
  accepted(workspaceId: string, messages: number): void {
    this.of(workspaceId).accepted += messages
  }

  /** @param head after the transition */
  moved(kind: TransitionKind, head: MessageHead): void {
    if (head.isSandbox) return
    const counts = this.of(head.workspaceId)
    const result = resultOf(kind, head)
    if (result === undefined) return
    counts[result] += 1
    if (result === 'bounced' && head.deliveredAt !== null) counts.delivered -= 1
  }

  /** A message left the queue although its status could not be written. */
  ended(workspaceId: string, result: Result): void {
    this.of(workspaceId)[result] += 1
  }

  async write(db: Queries): Promise<void> {
    const rows = [...this.byWorkspace]
      .filter(([, counts]) => COUNTERS.some(name => counts[name] !== 0))
      // Always in the same order, so that two transactions never wait for each other's rows.
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([workspaceId, counts]) => [workspaceId, ...COUNTERS.map(name => counts[name])])
    for (const piece of inPieces(rows)) await addRows(db, { rows: piece })
  }

  private of(workspaceId: string): Record<Counter, number> {
    const known = this.byWorkspace.get(workspaceId)
    if (known) return known
    const counts = { accepted: 0, delivered: 0, bounced: 0, failed: 0, cancelled: 0, suppressed: 0 }
    this.byWorkspace.set(workspaceId, counts)
    return counts
  }
}

/** Where the transition moves the message; undefined if it stays where it is. */
function resultOf(kind: TransitionKind, { status, bouncedAt }: MessageHead): Result | undefined {
  switch (kind) {
    case 'delivered':
    case 'presumed':
      // A bounce may arrive before the reply that it follows is recorded.
      return bouncedAt === null ? 'delivered' : undefined
    case 'bounced':
      // Failed and suppressed mail stays so, even if an earlier attempt is returned.
      return status === 'failed' || status === 'suppressed' ? undefined : 'bounced'
    case 'failed':
    case 'cancelled':
      return kind
    case 'suppressed':
    case 'withheld':
      return 'suppressed'
    default:
      return undefined
  }
}

export interface MailBalance extends Readonly<Record<Counter, number>> {
  /** Messages in the queue. */
  readonly waiting: number
}

/** Selected columns: sums of the counters. */
export const totalsOfAll = sql.join(
  COUNTERS.map(name => sql`cast(coalesce(sum(${sql.ref(name)}), 0) as bigint) as ${sql.ref(name)}`),
)

/**
 * Totals and queue in one statement, so that both are of the same moment.
 *
 * @param db the slow reader: it counts the queue, along an index
 * @param workspaceId default: all, with the appliance's own mail
 */
export async function readMailBalance(db: Queries, workspaceId?: string): Promise<MailBalance> {
  const { rows } = await sql<MailBalance>`
    select ${totalsOfAll},
      ${workspaceId === undefined ? sql`(select count(*) from queue)` : waitingOf(workspaceId)} as waiting
    from mail_totals
    ${workspaceId === undefined ? sql`` : sql`where workspace_id = ${workspaceId}`}`.execute(db)
  const [balance] = rows
  if (!balance) throw new Error('sum query returned no row')
  return balance
}

/** Three parts, each answered by a partial index; a claimed message has been attempted. */
function waitingOf(workspaceId: string) {
  return sql`(select count(*) from queue where workspace_id = ${workspaceId} and attempts = 0)
      + (select count(*) from queue where workspace_id = ${workspaceId} and attempts > 0 and claimed_by is null)
      + (select count(*) from queue where workspace_id = ${workspaceId} and attempts > 0 and claimed_by is not null)`
}

/** Accepted mail that no result accounts for; 0 unless the database was damaged. */
export function differenceOf(balance: MailBalance): number {
  return RESULTS.reduce((left, name) => left - balance[name], balance.accepted) - balance.waiting
}
