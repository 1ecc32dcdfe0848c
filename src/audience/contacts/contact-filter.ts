/** Filters and sort orders of `GET /contacts`. Fails: AppError validation_error, not_found. */
import Type from 'typebox'
import { searchWords } from '../../core/fold.js'
import { given } from '../../core/given.js'
import { readMoment } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { noMoment } from '../../http/time-range.js'
import { normalizedAddress } from '../../mail/address.js'
import type { AudienceParts } from '../audience-parts.js'
import { requireList } from '../lists/lists.js'
import { readConditions } from '../segments/read-conditions.js'
import { requireSegment } from '../segments/segment-routes.js'
import { requireTagNamed } from '../tags/tags.js'
import { CONTACT_SORTS, type ContactQuery, type ContactSort } from './contact-page-store.js'

const Since = (what: string) =>
  Type.Optional(
    Type.String({
      maxLength: 64,
      description: `${what} at or after this time; ISO 8601, UTC if no zone is given.`,
    }),
  )

export const listFilters = {
  email: Type.Optional(
    Type.String({ minLength: 1, maxLength: 320, description: 'Full address; case is ignored.' }),
  ),
  list_id: Type.Optional(
    Type.String({
      maxLength: 64,
      shownFormat: 'uuid',
      description: 'Members of this list, static or dynamic.',
    }),
  ),
  tag: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'Contacts with this tag, by id or name; case is ignored.',
    }),
  ),
  segment_id: Type.Optional(
    Type.String({ maxLength: 64, shownFormat: 'uuid', description: 'Contacts in this segment.' }),
  ),
  created_since: Since('Created'),
  updated_since: Since('Created or updated'),
  sort: Type.Optional(
    Type.Enum([...CONTACT_SORTS], {
      description:
        'Default `-created_at`, newest first. Contacts with the same timestamp are sorted by creation.',
    }),
  ),
}

interface ListFilters {
  readonly search?: string
  readonly subscribed?: boolean
  readonly bounced?: boolean
  readonly email?: string
  readonly list_id?: string
  readonly tag?: string
  readonly segment_id?: string
  readonly created_since?: string
  readonly updated_since?: string
  readonly sort?: ContactSort
}

export async function readListFilter(
  { database: { reader }, clock }: Pick<AudienceParts, 'database' | 'clock'>,
  workspaceId: string,
  query: ListFilters,
): Promise<ContactQuery> {
  const {
    search = '',
    subscribed,
    bounced,
    email,
    list_id: listId,
    tag: tagName,
    segment_id: segmentId,
    sort,
  } = query
  const createdSince = momentOf('created_since', query.created_since)
  const updatedSince = momentOf('updated_since', query.updated_since)
  const list = listId === undefined ? undefined : await requireList(reader, workspaceId, listId, 'list_id')
  const tag = tagName === undefined ? undefined : await requireTagNamed(reader, workspaceId, tagName)
  const conditions = [list?.conditions, await conditionsOfSegment(reader, workspaceId, segmentId)]
  return {
    words: searchWords(search),
    groups: conditions.flatMap(one => (one ? [readConditions(one)] : [])),
    now: clock.now(),
    ...given({ subscribed, bounced, createdSince, updatedSince, sort }),
    ...(email === undefined ? {} : { email: normalizedAddress(email.trim()) }),
    ...(tag ? { tag: { seq: tag.seq, contacts: tag.contactCount } } : {}),
    ...(list && !list.conditions ? { list: { seq: list.seq, contacts: list.memberCount } } : {}),
  }
}

async function conditionsOfSegment(reader: Queries, workspaceId: string, id: string | undefined) {
  return id === undefined
    ? undefined
    : (await requireSegment(reader, workspaceId, id, 'segment_id')).conditions
}

function momentOf(field: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const moment = readMoment(text)
  if (moment === undefined) throw noMoment(field, text)
  return moment
}
