/**
 * SQL of audiences: all contacts of a workspace or its sandbox, as number ranges and counts.
 *
 * An audience is created with its first contact. The upper half of a contact's number is the audience's number, so that an audience is
 * one range of the table's key.
 */
import { sql, type Generated } from 'kysely'
import type { Queries } from '../db/database.js'
import { statement } from '../db/statement.js'

interface AudienceRow {
  seq: Generated<number>
  workspace_id: string
  last_contact: number
  contacts: number
  unsubscribed: number
  bounced: number
  unsubscribed_bounced: number
}

declare module '../db/tables.js' {
  interface Tables {
    audiences: AudienceRow
  }
}

/** Contact numbers per audience, never reused. */
const ROOM = 2 ** 32

/** Contact numbers, both inclusive. */
export interface SeqRange {
  readonly first: number
  readonly last: number
}

export function contactsOf(audience: number): SeqRange {
  return { first: audience * ROOM, last: audience * ROOM + ROOM - 1 }
}

export interface Audience {
  readonly number: number
  /** Sequence within the audience of the newest contact. */
  readonly lastContact: number
  /** Excludes deleted contacts. */
  readonly contacts: number
  readonly unsubscribed: number
  readonly bounced: number
  readonly unsubscribedBounced: number
}

const selectAudience = statement((db, { workspaceId }: { workspaceId: string }) =>
  db.selectFrom('audiences').selectAll().where('workspace_id', '=', workspaceId),
)

/** @returns undefined if the audience never had a contact */
export async function findAudience(db: Queries, workspaceId: string): Promise<Audience | undefined> {
  const [row] = (await selectAudience(db, { workspaceId })).rows
  return (
    row && {
      number: row.seq,
      lastContact: row.last_contact,
      contacts: row.contacts,
      unsubscribed: row.unsubscribed,
      bounced: row.bounced,
      unsubscribedBounced: row.unsubscribed_bounced,
    }
  )
}

const takeNumbers = statement((db, { workspaceId, count }: { workspaceId: string; count: number }) =>
  db
    .insertInto('audiences')
    .values({
      workspace_id: workspaceId,
      last_contact: count,
      contacts: 0,
      unsubscribed: 0,
      bounced: 0,
      unsubscribed_bounced: 0,
    })
    .onConflict(conflict =>
      conflict
        .column('workspace_id')
        .doUpdateSet({ last_contact: sql<number>`audiences.last_contact + excluded.last_contact` }),
    )
    .returning(['seq', 'last_contact']),
)

/** Reserves numbers for new contacts. @returns the audience's number, and the first of `count` consecutive contact numbers */
export async function reserveSeqs(
  db: Queries,
  workspaceId: string,
  count: number,
): Promise<{ readonly audience: number; readonly first: number }> {
  const [row] = (await takeNumbers(db, { workspaceId, count })).rows
  if (!row) throw new Error('audience was not created')
  return { audience: row.seq, first: row.seq * ROOM + row.last_contact - count + 1 }
}

/** The contact fields that counts depend on. */
export interface Counted {
  readonly subscribed: boolean
  readonly bounced: boolean
}

/** Accumulates the changes to an audience's counts. */
export class CountChange {
  contacts = 0
  unsubscribed = 0
  bounced = 0
  unsubscribedBounced = 0

  add(contact: Counted): void {
    this.count(contact, 1)
  }

  remove(contact: Counted): void {
    this.count(contact, -1)
  }

  get isNone(): boolean {
    const { contacts, unsubscribed, bounced, unsubscribedBounced } = this
    return contacts === 0 && unsubscribed === 0 && bounced === 0 && unsubscribedBounced === 0
  }

  private count({ subscribed, bounced }: Counted, by: number): void {
    this.contacts += by
    if (!subscribed) this.unsubscribed += by
    if (bounced) this.bounced += by
    if (!subscribed && bounced) this.unsubscribedBounced += by
  }
}

interface Changes extends Readonly<Record<string, number>> {
  readonly audience: number
  readonly contacts: number
  readonly unsubscribed: number
  readonly bounced: number
  readonly both: number
}

const changeCounts = statement((db, { audience, contacts, unsubscribed, bounced, both }: Changes) =>
  db
    .updateTable('audiences')
    .set({
      contacts: sql<number>`contacts + ${contacts}`,
      unsubscribed: sql<number>`unsubscribed + ${unsubscribed}`,
      bounced: sql<number>`bounced + ${bounced}`,
      unsubscribed_bounced: sql<number>`unsubscribed_bounced + ${both}`,
    })
    .where('seq', '=', audience),
)

/** Must run in the transaction that creates, changes or deletes the contacts. */
export async function applyCounts(db: Queries, audience: number, change: CountChange): Promise<void> {
  if (change.isNone) return
  const { contacts, unsubscribed, bounced, unsubscribedBounced: both } = change
  await changeCounts(db, { audience, contacts, unsubscribed, bounced, both })
}

export function countOf(
  audience: Audience,
  filter: { readonly subscribed?: boolean; readonly bounced?: boolean },
): number {
  const { contacts, unsubscribed, bounced, unsubscribedBounced } = audience
  if (filter.subscribed === undefined)
    return filter.bounced === undefined ? contacts : filter.bounced ? bounced : contacts - bounced
  if (filter.bounced === undefined) return filter.subscribed ? contacts - unsubscribed : unsubscribed
  if (!filter.subscribed) return filter.bounced ? unsubscribedBounced : unsubscribed - unsubscribedBounced
  return filter.bounced
    ? bounced - unsubscribedBounced
    : contacts - unsubscribed - bounced + unsubscribedBounced
}
