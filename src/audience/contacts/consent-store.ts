/**
 * SQL of consent: whether contacts still want the mail of campaigns and automations that is queued for them.
 *
 * Asked when mail is handed to the queue and before each attempt, since it may wait for hours in between. Consent to a list
 * counts until the last moment; that a segment or a dynamic list no longer matches does not.
 */
import { must } from '../../core/must.js'
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
  /** JSON, of a campaign for several. */
  readonly audience: string | null
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
      'campaigns.audience as audience',
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
  /** Of campaigns for several lists and segments, by their audience as JSON. */
  const combined = new Map<string, StandingRow[]>()
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
      else if (row.audience !== null && row.contact !== null)
        combined.set(row.audience, [...(combined.get(row.audience) ?? []), row])
    }
  for (const [audience, rows] of combined) {
    const { include } = JSON.parse(audience) as { readonly include: readonly NamedList[] }
    const contacts = rows.map(({ contact }) => must(contact, 'the contact of a message'))
    const left = await findLeavers(db, include, contacts)
    rows.forEach(({ id }, at) => {
      if (left.has(must(contacts[at], 'the contact of a message'))) found.set(id, 'left_list')
    })
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

/** A list or segment that a campaign is for. */
export type NamedList = { readonly listId: string } | { readonly segmentId: string }

/**
 * @param named all that a campaign is for
 * @param contacts contact numbers
 * @returns those that are in none of these lists any more; none if one of them is a segment, dynamic or gone
 */
export async function findLeavers(
  db: Queries,
  named: readonly NamedList[],
  contacts: readonly number[],
): Promise<ReadonlySet<number>> {
  let left = new Set(named.length === 0 ? [] : contacts)
  for (const one of named) {
    if (left.size === 0) break
    if (!('listId' in one)) return new Set()
    const { listId } = one
    if ((await selectType(db, { listId })).rows[0]?.type !== 'static') return new Set()
    const stay = new Set(left)
    for (const list of inLists([...left]))
      for (const { contact } of (await selectMembers(db, { listId, contacts: list })).rows)
        stay.delete(contact)
    left = stay
  }
  return left
}
