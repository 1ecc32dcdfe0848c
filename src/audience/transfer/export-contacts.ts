/**
 * Streams contacts as CSV that an import can read, one column per attribute, or as JSON.
 *
 * Called by the route and the command line. Two passes: attribute names, then contacts. Each chunk is a separate read, so memory use does
 * not depend on the size of the export. Stops between reads if the consumer stops.
 */
import { csvText } from '../../core/csv.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import type { Contact, Named } from '../contacts/contact.js'
import type { ContactFilter } from '../contacts/contact-page-store.js'
import { shownWith } from '../contacts/contact-schema.js'
import { CONTACT_TAGS, LIST_MEMBERS, thingsOf } from '../pair-store.js'
import { attributeText } from './apply-rows.js'
import { attributeNames, beginExport, exportPage, type Exported } from './export-store.js'
import { columnFor } from './reading/columns.js'
import { namesText } from './reading/read-row.js'

const PAGE = 1_000
/** Contact numbers per read when collecting attribute names: some 50 ms. */
const NUMBERS_AT_ONCE = 20_000
/** Further attributes share one column, as JSON; an import takes 200 columns. */
const MAX_ATTRIBUTE_COLUMNS = 150

const FIXED = [
  ...['id', 'email', 'first_name', 'last_name', 'subscribed', 'bounced', 'lists', 'tags'],
  ...['created_at', 'updated_at'],
]

/** @param now ms since epoch UTC */
export async function* exportContacts(
  db: Queries,
  workspaceId: string,
  filter: ContactFilter,
  now: number,
  gone?: AbortSignal,
): AsyncGenerator<string> {
  const exported = await beginExport(db, workspaceId, filter, now)
  const names = exported ? await findNames(db, exported, gone) : []
  if (gone?.aborted) return
  const columns = names.slice(0, MAX_ATTRIBUTE_COLUMNS)
  const hasMore = names.length > columns.length
  yield `${csvText([[...FIXED, ...columns.map(columnFor), ...(hasMore ? ['attributes'] : [])]])}\n`
  if (!exported) return
  for await (const { contacts, lists, tags } of pagesOf(db, exported))
    yield `${csvText(
      contacts.map(contact => [
        ...fixedCells(contact, lists.get(contact.seq) ?? [], tags.get(contact.seq) ?? []),
        ...columns.map(name => cellOf(contact, name)),
        ...(hasMore ? [otherAttributes(contact, new Set(columns))] : []),
      ]),
    )}\n`
}

/** A JSON array of API contact objects, one per line; chunks end at line breaks. */
export async function* exportContactsAsJson(
  db: Queries,
  workspaceId: string,
  filter: ContactFilter,
  now: number,
): AsyncGenerator<string> {
  const exported = await beginExport(db, workspaceId, filter, now)
  let before = '[\n'
  if (exported)
    for await (const { contacts, lists, tags } of pagesOf(db, exported)) {
      const shown = contacts.map(contact =>
        JSON.stringify(
          shownWith(contact, false, {
            lists: lists.get(contact.seq) ?? [],
            tags: tags.get(contact.seq) ?? [],
          }),
        ),
      )
      yield `${before}${shown.join(',\n')}\n`
      before = ','
    }
  yield before === ',' ? ']\n' : '[]\n'
}

async function* pagesOf(db: Queries, exported: Exported) {
  for (let from = exported.first; ;) {
    const contacts = await exportPage(db, exported, from, PAGE)
    const last = contacts.at(-1)
    if (!last) return
    const seqs = contacts.map(({ seq }) => seq)
    const [lists, tags] = [await thingsOf(db, LIST_MEMBERS, seqs), await thingsOf(db, CONTACT_TAGS, seqs)]
    yield { contacts, lists, tags }
    from = last.seq + 1
  }
}

async function findNames(db: Queries, exported: Exported, gone?: AbortSignal): Promise<string[]> {
  const names = new Set<string>()
  for (let first = exported.first; first <= exported.last && !gone?.aborted; first += NUMBERS_AT_ONCE)
    for (const name of await attributeNames(db, exported, first, first + NUMBERS_AT_ONCE - 1)) names.add(name)
  return [...names].sort()
}

function fixedCells(contact: Contact, lists: readonly Named[], tags: readonly Named[]): string[] {
  return [
    contact.id,
    contact.email,
    contact.firstName ?? '',
    contact.lastName ?? '',
    String(contact.subscribed),
    String(contact.bounced),
    namesText(lists.map(({ name }) => name)),
    namesText(tags.map(({ name }) => name)),
    isoTime(contact.createdAt),
    isoTime(contact.updatedAt),
  ]
}

function cellOf({ attributes }: Contact, name: string): string {
  return Object.hasOwn(attributes, name) ? attributeText(attributes[name]) : ''
}

function otherAttributes({ attributes }: Contact, columns: ReadonlySet<string>): string {
  const others = Object.entries(attributes).filter(([name]) => !columns.has(name))
  return others.length === 0 ? '' : JSON.stringify(Object.fromEntries(others))
}
