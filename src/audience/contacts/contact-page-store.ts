/**
 * SQL of the list of contacts: newest first, by words, and by whether they are subscribed or bounced.
 *
 * For `Database.slowReader`: what is common takes long to count. Without words the counts are known and pages are read from the end
 * that is nearer.
 */
import { sql, type RawBuilder } from 'kysely'
import type { Queries } from '../../db/database.js'
import type { Listing, Page } from '../../http/pagination.js'
import { contactsOf, countOf, findAudience, type SeqRange } from '../audience-store.js'
import { inShownOrder, readingOf, type Reading } from '../paging.js'
import { listFromPieces, piecesOf, type Patience } from '../scan-store.js'
import type { Contact } from './contact.js'
import { CONTACT_COLUMNS, contactFromRow } from './contact-store.js'
import { candidates, hasWords } from '../search/search-store.js'

export interface ContactFilter {
  /** Folded; each is somewhere in address or names. */
  readonly words?: readonly string[]
  readonly subscribed?: boolean
  readonly bounced?: boolean
}

export async function listContacts(
  db: Queries,
  workspaceId: string,
  filter: ContactFilter,
  page: Page,
  mayGoOn: Patience,
): Promise<Listing<Contact>> {
  const audience = await findAudience(db, workspaceId)
  if (!audience) return { items: [], total: 0 }
  const { words = [] } = filter
  const isLive = [sql<boolean>`deleted_at is null`, ...flagConditions(filter)]
  const range = contactsOf(audience.number)
  if (words.length === 0) {
    const total = countOf(audience, filter)
    return { items: await readPage(db, [inRange(range), ...isLive], readingOf(page, total)), total }
  }
  const isMeant = [...isLive, hasWords(db, words)]
  const named = await candidates(db, range, words)
  const pieces = named ? [range] : piecesOf(audience)
  return listFromPieces(db, pieces, piece => [named ?? inRange(piece), ...isMeant], page, mayGoOn)
}

function inRange({ first, last }: SeqRange): RawBuilder<boolean> {
  return sql<boolean>`seq between ${first} and ${last}`
}

/** As literals, so that the index of the few is found. */
function flagConditions({ subscribed, bounced }: ContactFilter): RawBuilder<boolean>[] {
  return [
    ...(subscribed === undefined ? [] : [sql<boolean>`subscribed = ${sql.lit(subscribed ? 1 : 0)}`]),
    ...(bounced === undefined ? [] : [sql<boolean>`is_bounced = ${sql.lit(bounced ? 1 : 0)}`]),
  ]
}

/** Those that meet the conditions, which are about the table `contacts`. */
export async function readPage(
  db: Queries,
  conditions: readonly RawBuilder<boolean>[],
  reading: Reading,
): Promise<Contact[]> {
  if (reading.limit === 0) return []
  const order = sql.raw(reading.order)
  const rows = await db
    .selectFrom('contacts')
    .select(CONTACT_COLUMNS)
    // First only where they are, which an index tells: the rows themselves are large.
    .where(
      sql<boolean>`seq in (
        select seq from contacts where ${sql.join(conditions, sql` and `)}
        order by seq ${order} limit ${reading.limit} offset ${reading.offset})`,
    )
    .orderBy('seq', reading.order)
    .execute()
  return inShownOrder(rows, reading).map(contactFromRow)
}
