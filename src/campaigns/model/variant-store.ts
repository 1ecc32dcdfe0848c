/**
 * SQL of A/B tests that were sent: how far the test is, and each variant's letter and counts.
 *
 * A recipient's variant is in its row (`recipient-store.ts`). Counts change in the transaction that changes the recipients.
 */
import { sql, type Generated, type Selectable } from 'kysely'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { inPieces, statement, type Rows } from '../../db/statement.js'
import { STAT_COLUMNS, statsFromRow } from './campaign-store.js'
import type { Stats } from './campaign.js'

interface TestRow {
  campaign: number
  drawn: number
  drawn_through: number
  drawn_at: number | null
  sampled_at: number | null
  decide_at: number | null
  paused_at: number | null
  winner: number | null
  decided_at: number | null
  decided_by: DecidedBy | null
}

const COUNTS = {
  recipients: 'recipients',
  pending: 'pending',
  ...STAT_COLUMNS,
} as const
type CountName = keyof typeof COUNTS
type CountColumn = (typeof COUNTS)[CountName]

type VariantRow = {
  campaign: number
  variant: number
  letter: string | null
  content_id: string | null
  content_at: number | null
} & Record<CountColumn, Generated<number>>

declare module '../../db/tables.js' {
  interface Tables {
    campaign_tests: TestRow
    campaign_variants: VariantRow
  }
}

export type DecidedBy = 'rule' | 'person'

/** A variant in a sent test; counts are of the sample alone. */
export interface SentVariant extends Stats {
  readonly variant: number
  readonly recipients: number
  readonly pending: number
  /** Content used for new messages, and since when. */
  readonly contentId: string | null
  readonly contentAt: number | null
}

export interface SentTest {
  readonly campaign: number
  /** Recipients drawn so far, and the contact number of the last. */
  readonly drawn: number
  readonly drawnThrough: number
  readonly drawnAt: number | null
  readonly sampledAt: number | null
  readonly decideAt: number | null
  readonly pausedAt: number | null
  readonly winner: number | null
  readonly decidedAt: number | null
  readonly decidedBy: DecidedBy | null
  readonly variants: readonly SentVariant[]
}

/** @param letters of the variants in order */
export async function insertTest(db: Queries, campaign: number, letters: readonly object[]): Promise<void> {
  await db.insertInto('campaign_tests').values({ campaign, drawn: 0, drawn_through: 0 }).execute()
  await db
    .insertInto('campaign_variants')
    .values(letters.map((letter, variant) => ({ campaign, variant, letter: JSON.stringify(letter) })))
    .execute()
}

const selectTest = statement((db, { campaign }: { campaign: number }) =>
  db.selectFrom('campaign_tests').selectAll().where('campaign', '=', campaign),
)

const selectVariants = statement((db, { campaign }: { campaign: number }) =>
  db
    .selectFrom('campaign_variants')
    .select(['variant', 'content_id', 'content_at', ...Object.values(COUNTS)])
    .where('campaign', '=', campaign)
    .orderBy('variant'),
)

/** @returns undefined if the campaign has no test or was not sent */
export function findTest(db: Queries, campaign: number): Promise<SentTest | undefined> {
  return snapshot(db, db => readTest(db, campaign))
}

async function readTest(db: Queries, campaign: number): Promise<SentTest | undefined> {
  const [test] = (await selectTest(db, { campaign })).rows as Selectable<TestRow>[]
  if (!test) return undefined
  const { rows } = await selectVariants(db, { campaign })
  return {
    campaign,
    drawn: test.drawn,
    drawnThrough: test.drawn_through,
    drawnAt: test.drawn_at,
    sampledAt: test.sampled_at,
    decideAt: test.decide_at,
    pausedAt: test.paused_at,
    winner: test.winner,
    decidedAt: test.decided_at,
    decidedBy: test.decided_by,
    variants: rows.map(row => ({
      variant: row.variant,
      contentId: row.content_id,
      contentAt: row.content_at,
      recipients: row.recipients,
      pending: row.pending,
      ...statsFromRow(row),
    })),
  }
}

/** @returns the letter as JSON; undefined once the campaign is over */
export async function findVariantLetter(
  db: Queries,
  campaign: number,
  variant: number,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('campaign_variants')
    .select('letter')
    .where('campaign', '=', campaign)
    .where('variant', '=', variant)
    .executeTakeFirst()
  return row?.letter ?? undefined
}

/** Nothing more will be queued. */
export async function endTest(db: Queries, campaign: number): Promise<void> {
  await db
    .updateTable('campaign_variants')
    .set({ letter: null, pending: 0 })
    .where('campaign', '=', campaign)
    .execute()
}

/** Recipients that are still to be drawn, in order. */
export async function listUndrawn(
  db: Queries,
  campaign: number,
  after: number,
  limit: number,
): Promise<number[]> {
  const rows = await db
    .selectFrom('campaign_recipients')
    .select('contact')
    .where('campaign', '=', campaign)
    .where('contact', '>', after)
    .orderBy('contact')
    .limit(limit)
    .execute()
  return rows.map(({ contact }) => contact)
}

const setVariants = statement(
  (_, { rows }: Rows) =>
    sql`update campaign_recipients set variant = drawn.column3
      from (values ${sql.join(
        rows.map(row => sql`(${sql.join(row.map(value => sql`cast(${value} as bigint)`))})`),
      )}) as drawn
      where campaign_recipients.campaign = drawn.column1 and campaign_recipients.contact = drawn.column2`,
)

export async function markDrawn(
  db: Queries,
  campaign: number,
  drawn: readonly (readonly [contact: number, variant: number])[],
): Promise<void> {
  const rows = drawn.map(([contact, variant]) => [campaign, contact, variant])
  for (const piece of inPieces(rows)) await setVariants(db, { rows: piece })
}

type TestChange = Partial<Pick<TestRow, 'drawn' | 'drawn_through' | 'drawn_at' | 'sampled_at' | 'decide_at'>>

export async function changeTest(db: Queries, campaign: number, change: TestChange): Promise<void> {
  await db.updateTable('campaign_tests').set(change).where('campaign', '=', campaign).execute()
}

/** @returns false if there is a winner already */
export async function setWinner(
  db: Queries,
  campaign: number,
  winner: number,
  decidedBy: DecidedBy,
  now: number,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('campaign_tests')
    .set({ winner, decided_by: decidedBy, decided_at: now, decide_at: null })
    .where('campaign', '=', campaign)
    .where('winner', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

export async function notePause(db: Queries, campaign: number, now: number): Promise<void> {
  await db
    .updateTable('campaign_tests')
    .set({ paused_at: now })
    .where('campaign', '=', campaign)
    .where('decide_at', 'is not', null)
    .execute()
}

/** The decision is as far away as it was when the campaign was paused. */
export async function noteResume(db: Queries, campaign: number, now: number): Promise<void> {
  await sql`update campaign_tests set decide_at = decide_at + ${now} - paused_at, paused_at = null
    where campaign = ${campaign} and paused_at is not null`.execute(db)
}

export interface VariantChange {
  readonly contentId?: string
  readonly contentAt?: number
}

/** @param counted added to the counts; others than a variant's are ignored */
export async function changeVariant(
  db: Queries,
  campaign: number,
  variant: number,
  { contentId, contentAt }: VariantChange,
  counted: Partial<Readonly<Record<string, number>>>,
): Promise<void> {
  const set: Record<string, unknown> = {
    ...given({ content_id: contentId, content_at: contentAt }),
  }
  for (const [name, column] of Object.entries(COUNTS)) {
    const by = counted[name] ?? 0
    if (by !== 0) set[column] = sql`${sql.ref(column)} + ${by}`
  }
  if (Object.keys(set).length === 0) return
  await db
    .updateTable('campaign_variants')
    .set(set)
    .where('campaign', '=', campaign)
    .where('variant', '=', variant)
    .execute()
}
