/**
 * SQL of consent: whether contacts still want the mail of campaigns and automations that is queued for them.
 *
 * Asked when mail is handed to the queue and before each attempt, since it may wait for hours in between. Consent to a list
 * counts until the last moment; that a segment or a dynamic list no longer matches does not.
 */
import type { Queries } from '../../db/database.js'
import { inLists, statement } from '../../db/statement.js'
import type { Flag } from '../../db/tables.js'
import { reasonAgainst, type ConsentReason } from './consent.js'

interface StandingRow {
  readonly id: string
  readonly contact: number | null
  readonly subscribed: Flag | null
  readonly is_suspended: Flag | null
  readonly is_bounced: Flag | null
  readonly list: number | null
  readonly member: number | null
}

const selectStandings = statement((db, { ids }: { ids: readonly string[] }) =>
  db
    .selectFrom('messages')
    .leftJoin('contacts', join =>
      join.onRef('contacts.id', '=', 'messages.contact_id').on('contacts.deleted_at', 'is', null),
    )
    .leftJoin('campaigns', 'campaigns.id', 'messages.campaign_id')
    .leftJoin('lists', join =>
      join.onRef('lists.id', '=', 'campaigns.list_id').on('lists.type', '=', 'static'),
    )
    .leftJoin('list_members', join =>
      join.onRef('list_members.list', '=', 'lists.seq').onRef('list_members.contact', '=', 'contacts.seq'),
    )
    .select([
      'messages.id as id',
      'contacts.seq as contact',
      'contacts.subscribed as subscribed',
      'contacts.is_suspended as is_suspended',
      'contacts.is_bounced as is_bounced',
      'lists.seq as list',
      'list_members.contact as member',
    ])
    .where('messages.id', 'in', ids)
    .where('messages.contact_id', 'is not', null),
)

/** Messages of campaigns and automations whose contact does not want them any more, with the reason. */
export async function findWithdrawnConsent(
  db: Queries,
  messageIds: readonly string[],
): Promise<ReadonlyMap<string, 'suppressed' | ConsentReason>> {
  const found = new Map<string, 'suppressed' | ConsentReason>()
  for (const ids of inLists(messageIds))
    for (const row of (await selectStandings(db, { ids })).rows as readonly StandingRow[]) {
      const reason = reasonAgainst({
        isDeleted: row.contact === null,
        isSubscribed: row.subscribed === 1,
        isSuspended: row.is_suspended === 1,
        isBounced: row.is_bounced === 1,
      })
      if (reason !== undefined) found.set(row.id, reason)
      else if (row.list !== null && row.member === null) found.set(row.id, 'left_list')
    }
  return found
}

const selectMembers = statement(
  (db, { listId, contacts }: { readonly listId: string; readonly contacts: readonly number[] }) =>
    db
      .selectFrom('list_members')
      .innerJoin('lists', 'lists.seq', 'list_members.list')
      .select('list_members.contact as contact')
      .where('lists.id', '=', listId)
      .where('list_members.contact', 'in', contacts),
)

const selectType = statement((db, { listId }: { readonly listId: string }) =>
  db.selectFrom('lists').select('type').where('id', '=', listId),
)

/** @param contacts contact numbers @returns those that are no members of the list; none if it is dynamic or gone */
export async function findLeavers(
  db: Queries,
  listId: string,
  contacts: readonly number[],
): Promise<ReadonlySet<number>> {
  const left = new Set(contacts)
  if ((await selectType(db, { listId })).rows[0]?.type !== 'static') return new Set()
  for (const list of inLists(contacts))
    for (const { contact } of (await selectMembers(db, { listId, contacts: list })).rows) left.delete(contact)
  return left
}
