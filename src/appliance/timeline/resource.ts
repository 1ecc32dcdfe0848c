/** `GET /contacts/:id/timeline`, in the Contacts chapter; here because it reads tables of many resources. */
import Type from 'typebox'
import { requireContact } from '../../audience/contacts/contacts.js'
import { isoTime } from '../../core/moments.js'
import type { Database } from '../../db/database.js'
import { Moment } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute } from '../../http/route.js'
import { resource } from '../../resource/resource.js'
import { listTimeline, TIMELINE_TYPES } from './timeline-store.js'

const TimelineEntrySchema = Type.Object(
  {
    type: Type.Enum([...TIMELINE_TYPES], { description: 'More types may be added.' }),
    occurred_at: Moment(),
    data: Type.Record(Type.String(), Type.Unknown(), {
      description:
        '`email.*`: message_id, subject, status, campaign_id, automation_id; `list.*`: list_id, list_name; `tag.*`: tag_id, tag_name; ' +
        '`flow.*`: automation_id, automation_name, run_id, trigger_type, status; `form.submitted`: form_id, fields, confirmed; ' +
        '`suppression.added`: reason, scope; `conversion.created`: conversion_id, value, currency, message_id, campaign_id; ' +
        '`product.viewed`: product_id and product attributes; `contact.created`: empty.',
    }),
  },
  { title: 'TimelineEntry' },
)

export const timeline = resource({
  open: ({ database }: { readonly database: Database }) => ({
    routes: [
      listRoute({
        method: 'GET',
        path: '/contacts/:id/timeline',
        access: 'contacts:read',
        operationId: 'getContactTimeline',
        chapter: 'Contacts',
        summary: "Get a contact's timeline.",
        description:
          'Events of a contact, newest first: emails to its current address and their status, the lists it is in and the tags ' +
          'it has, with dates, form submissions, automation runs, conversions, product views and the suppression of its address, as long as ' +
          'they are retained. `email.opened` and `email.clicked` are the first of each email. Left lists and removed tags are not ' +
          'included; the events in `GET /contacts/:id/export` are.',
        params: Type.Object({ id: Type.String() }),
        query: Type.Object(cursorQuery, { additionalProperties: false }),
        item: TimelineEntrySchema,
        errors: ['contact_not_found'],
        async handle({ principal: { workspaceId }, params }, page) {
          const contact = await requireContact(database.reader, workspaceId, params.id)
          const found = await listTimeline(database.slowReader, workspaceId, contact, page)
          return {
            ...found,
            items: found.items.map(({ type, at, data }) => ({
              type,
              occurred_at: isoTime(at),
              data: { ...data },
            })),
          }
        },
      }),
    ],
  }),
})
