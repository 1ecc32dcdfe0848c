/** The contact export route. */
import Type from 'typebox'
import { searchWords } from '../../core/fold.js'
import { given } from '../../core/given.js'
import type { Database } from '../../db/database.js'
import { MOST_PER_KEY, MOST_PER_WORKSPACE } from '../../http/answer/download.js'
import { downloadRoute, type Route } from '../../http/route.js'
import type { AudienceParts } from '../audience-parts.js'
import type { ContactFilter } from '../contacts/contact-page-store.js'
import { requireList } from '../lists/static-list.js'
import { readConditions } from '../segments/read-conditions.js'
import { requireSegment } from '../segments/segment-routes.js'
import { requireTag } from '../tags/taggings.js'
import { exportContacts } from './export-contacts.js'

const IdQuery = (description: string) =>
  Type.Optional(Type.String({ maxLength: 64, shownFormat: 'uuid', description }))

/** Filters; all must match. */
export interface ExportWishes {
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
    summary: 'Export contacts as CSV.',
    description:
      'Oldest first, with one column per attribute; beyond 150 attributes the rest share one column as JSON. Cells that a spreadsheet ' +
      "would read as a formula are prefixed with `'`, which an import removes. Non-text values are written as JSON. A truncated response " +
      'lacks its last chunk.\n\n' +
      `At most ${MOST_PER_KEY} concurrent downloads per key and ${MOST_PER_WORKSPACE} per workspace; beyond that requests fail with ` +
      '`rate_limited`. A client that reads nothing for 10 seconds is disconnected.',
    query: Type.Object(
      {
        search: Type.Optional(Type.String({ maxLength: 200, description: 'Words, as in `GET /contacts`.' })),
        subscribed: Type.Optional(Type.Boolean()),
        bounced: Type.Optional(Type.Boolean()),
        list_id: IdQuery('Only contacts in this list.'),
        segment_id: IdQuery('Only contacts in this segment.'),
        tag_id: IdQuery('Only contacts with this tag.'),
      },
      { additionalProperties: false },
    ),
    mediaType: 'text/csv',
    exampleAnswer:
      'id,email,first_name,last_name,subscribed,bounced,lists,tags,created_at,updated_at,plan\n' +
      '0192f3a4-5b6c-7d8e-9f01-23456789abcd,ann@example.com,Ann,Lee,true,false,News,vip,' +
      '2026-01-05T10:00:00.000Z,2026-01-05T10:00:00.000Z,pro\n',
    errors: ['not_found'],
    async handle({ principal: { workspaceId }, query }) {
      const filter = await readFilter(database, workspaceId, query)
      return {
        fileName: 'contacts.csv',
        pieces: gone => exportContacts(database.exportReader, workspaceId, filter, clock.now(), gone),
      }
    },
  })
}

/** @throws AppError not_found */
export async function readFilter(
  { reader }: Pick<Database, 'reader'>,
  workspaceId: string,
  wishes: ExportWishes,
): Promise<ContactFilter> {
  const { search = '', subscribed, bounced, list_id: listId, segment_id: segmentId, tag_id: tagId } = wishes
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
