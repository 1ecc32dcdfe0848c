/**
 * Contact exports: as CSV that an import can read, one column per attribute, or as JSON.
 *
 * The route, and the generators it shares with the command line. Two passes: attribute names, then contacts. Each chunk is a separate
 * read, so memory use does not depend on the size of the export. Stops between reads if the consumer stops.
 */
import Type from 'typebox'
import { csvText } from '../../core/csv.js'
import { searchWords } from '../../core/fold.js'
import { given } from '../../core/given.js'
import { isoTime } from '../../core/moments.js'
import type { Database, Queries } from '../../db/database.js'
import { snapshot } from '../../db/snapshot.js'
import { MAX_PER_KEY, MAX_PER_WORKSPACE } from '../../http/answer/download.js'
import { downloadRoute, type Route } from '../../http/route.js'
import type { AudienceParts } from '../audience-parts.js'
import type { Contact, Named } from '../contacts/contact.js'
import type { ContactFilter } from '../contacts/contact-page-store.js'
import { ContactDetailsSchema, shownWith } from '../contacts/contact-schema.js'
import { requireList } from '../lists/lists.js'
import { CONTACT_TAGS, LIST_MEMBERS, thingsOf } from '../pair-store.js'
import { readConditions } from '../segments/read-conditions.js'
import { requireSegment } from '../segments/segment-routes.js'
import { requireTag } from '../tags/tags.js'
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

const IdQuery = (description: string) =>
  Type.Optional(Type.String({ maxLength: 64, shownFormat: 'uuid', description }))

/** Filters; all must match. */
export interface ExportQuery {
  readonly search?: string | undefined
  readonly subscribed?: boolean | undefined
  readonly bounced?: boolean | undefined
  readonly list_id?: string | undefined
  readonly segment_id?: string | undefined
  readonly tag_id?: string | undefined
}

export function exportRoute({ database, clock }: AudienceParts): Route {
  return downloadRoute({
    method: 'GET',
    path: '/contacts/export',
    access: 'contacts:read',
    operationId: 'exportContacts',
    chapter: 'Contacts',
    summary: 'Export contacts as CSV or JSON.',
    description:
      'Oldest first, with one column per attribute; beyond 150 attributes the rest share one column as JSON. Cells that a spreadsheet ' +
      "would read as a formula are prefixed with `'`, which an import removes. Non-text values are written as JSON. A truncated response " +
      'lacks its last chunk.\n\n' +
      `At most ${MAX_PER_KEY} concurrent downloads per key and ${MAX_PER_WORKSPACE} per workspace; beyond that requests fail with ` +
      '`rate_limited`. A client that reads nothing for 10 seconds is disconnected.',
    query: Type.Object(
      {
        search: Type.Optional(Type.String({ maxLength: 200, description: 'Words, as in `GET /contacts`.' })),
        subscribed: Type.Optional(Type.Boolean()),
        bounced: Type.Optional(Type.Boolean()),
        list_id: IdQuery('Only contacts in this list.'),
        segment_id: IdQuery('Only contacts in this segment.'),
        tag_id: IdQuery('Only contacts with this tag.'),
        format: Type.Optional(
          Type.Enum(['csv', 'json'], {
            description: '`json`: an array of contacts as `GET /contacts/{id}` returns them.',
          }),
        ),
      },
      { additionalProperties: false },
    ),
    mediaType: 'text/csv',
    otherFiles: [{ mediaType: 'application/json', schema: Type.Array(ContactDetailsSchema) }],
    exampleAnswer:
      'id,email,first_name,last_name,subscribed,bounced,lists,tags,created_at,updated_at,plan\n' +
      '0192f3a4-5b6c-7d8e-9f01-23456789abcd,ann@example.com,Ann,Lee,true,false,News,vip,' +
      '2026-01-05T10:00:00.000Z,2026-01-05T10:00:00.000Z,pro\n',
    errors: ['not_found'],
    async handle({ principal: { workspaceId, isSandbox }, query }) {
      const filter = await readFilter(database, workspaceId, query)
      const { exportReader } = database
      if (query.format === 'json')
        return {
          fileName: 'contacts.json',
          mediaType: 'application/json',
          pieces: () => exportContactsAsJson(exportReader, { workspaceId, isSandbox }, filter, clock.now()),
        }
      return {
        fileName: 'contacts.csv',
        pieces: gone => exportContacts(exportReader, workspaceId, filter, clock.now(), gone),
      }
    },
  })
}

/** @throws AppError not_found */
export async function readFilter(
  { reader }: Pick<Database, 'reader'>,
  workspaceId: string,
  query: ExportQuery,
): Promise<ContactFilter> {
  const { search = '', subscribed, bounced, list_id: listId, segment_id: segmentId, tag_id: tagId } = query
  const list = listId === undefined ? undefined : await requireList(reader, workspaceId, listId, 'list_id')
  const segment = segmentId === undefined ? undefined : await requireSegment(reader, workspaceId, segmentId)
  const tag = tagId === undefined ? undefined : await requireTag(reader, workspaceId, tagId)
  return {
    words: searchWords(search),
    ...given({ subscribed, bounced }),
    ...(tag ? { tag: { seq: tag.seq, contacts: tag.contactCount } } : {}),
    ...(list && !list.conditions ? { list: { seq: list.seq, contacts: list.memberCount } } : {}),
    groups: [list?.conditions, segment?.conditions].flatMap(conditions =>
      conditions ? [readConditions(conditions)] : [],
    ),
  }
}

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
  { workspaceId, isSandbox }: { readonly workspaceId: string; readonly isSandbox: boolean },
  filter: ContactFilter,
  now: number,
): AsyncGenerator<string> {
  const exported = await beginExport(db, workspaceId, filter, now)
  let before = '[\n'
  if (exported)
    for await (const { contacts, lists, tags } of pagesOf(db, exported)) {
      const shown = contacts.map(contact =>
        JSON.stringify(
          shownWith(contact, isSandbox, {
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
    const page = await snapshot(db, db => pageFrom(db, exported, from))
    const last = page.contacts.at(-1)
    if (!last) return
    yield page
    from = last.seq + 1
  }
}

async function pageFrom(db: Queries, exported: Exported, from: number) {
  const contacts = await exportPage(db, exported, from, PAGE)
  const seqs = contacts.map(({ seq }) => seq)
  return {
    contacts,
    lists: await thingsOf(db, LIST_MEMBERS, seqs),
    tags: await thingsOf(db, CONTACT_TAGS, seqs),
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
