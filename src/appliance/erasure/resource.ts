/**
 * `POST /contacts/erase`, and `GET /contacts/:id/export`: all data stored about a person in one workspace, as one JSON document.
 *
 * The export is written section by section while it is sent, so that memory use is bounded. It stops if the client disconnects.
 */
import Type from 'typebox'
import { checkEmail } from '../../audience/checks.js'
import { ContactSchema } from '../../audience/contacts/contact-schema.js'
import { requireContact } from '../../audience/contacts/contacts.js'
import { adminRoute } from '../../http/admin-route.js'
import { Moment } from '../../http/answer/answer-fields.js'
import { answerExample } from '../../http/openapi/example.js'
import { downloadRoute, route } from '../../http/route.js'
import { resource } from '../../resource/resource.js'
import { erasePerson, type ErasureParts } from './erase.js'
import { exportPerson } from './export-person.js'
import { SECTIONS } from './personal-tables.js'

const Exported = Type.Object(
  {
    exported_at: Moment(),
    contact: ContactSchema,
    ...Object.fromEntries(
      SECTIONS.map(section => [section, Type.Array(Type.Record(Type.String(), Type.Unknown()))]),
    ),
  },
  { title: 'ContactExport' },
)

const EXPORT_EXAMPLE = {
  exported_at: '2026-01-05T10:00:00.000Z',
  contact: answerExample(ContactSchema, undefined),
  ...Object.fromEntries(SECTIONS.map(section => [section, []])),
  lists: [{ id: '0192f3a4-5b6c-7d8e-9f01-23456789abce', name: 'News', added_at: '2026-01-05T10:00:00.000Z' }],
}

const ErasureRequest = Type.Object(
  { email: Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' }) },
  { additionalProperties: false, title: 'ErasureRequest' },
)

const Erasure = Type.Object(
  {
    erased: Type.Record(Type.String(), Type.Integer(), {
      description: 'Rows erased or anonymised, by kind.',
    }),
  },
  { title: 'Erasure' },
)

export const erasure = resource({
  open: (parts: ErasureParts) => ({
    routes: [
      downloadRoute({
        method: 'GET',
        path: '/contacts/:id/export',
        access: 'contacts:read',
        operationId: 'exportContact',
        chapter: 'Contacts',
        summary: 'Export all data about a contact.',
        description:
          'One JSON document for requests of access and portability (GDPR articles 15 and 20): the contact with its attributes, lists, tags, ' +
          'suppressions, messages with their delivery attempts, text, HTML, headers, data and attachments (base64), bounces, conversions, product views, form submissions, ' +
          'automation runs, campaigns, and the events (opens, clicks, list joins and leaves, ...), activity and rejected import rows that ' +
          'name the contact, as far as they are still kept. Covers the present address of the contact. A response that breaks off is ' +
          'incomplete JSON.',
        params: Type.Object({ id: Type.String() }),
        mediaType: 'application/json',
        fileSchema: Exported,
        exampleAnswer: EXPORT_EXAMPLE,
        errors: ['contact_not_found'],
        async handle({ principal: { workspaceId, isSandbox }, params }) {
          const { database, clock } = parts
          const contact = await requireContact(database.reader, workspaceId, params.id)
          return {
            fileName: `contact-${contact.id}.json`,
            pieces: gone =>
              exportPerson(database.exportReader, workspaceId, contact, {
                now: clock.now(),
                isSandbox,
                gone,
              }),
          }
        },
      }),
      route({
        method: 'POST',
        path: '/contacts/erase',
        access: 'contacts:write',
        operationId: 'eraseContact',
        chapter: 'Contacts',
        summary: 'Erase a person.',
        description:
          'Removes everything about an address from the workspace: the contact, its messages and their contents, events, automation runs, ' +
          'conversions, product views, form submissions, bounces, webhook deliveries and mentions in the activity log. A suppression ' +
          'survives as a hash of the address and still applies. Mail to others stays, without the address in its recipients, sender, ' +
          'Reply-To, headers, subject, tags and merge data; its text is deleted by retention. Mail that is still to be sent to others goes ' +
          'out as accepted and is counted as `contents_in_use`: repeat the request once it is sent. Imports under way drop its rows, and their files are deleted when they end. With 100,000 messages the answer takes ' +
          'about a minute; if it is cut off, repeat the request to erase the rest. The answer counts the erased rows. Restoring an older ' +
          'backup erases the person again.',
        body: ErasureRequest,
        response: Erasure,
        handle: async ({ principal, body }) => ({
          erased: {
            ...(await erasePerson(parts, checkEmail(body.email), principal.actor, principal.workspaceId)),
          },
        }),
      }),
      adminRoute({
        method: 'POST',
        path: '/contacts/erase',
        access: { permission: 'contacts:write', scope: 'appliance', isSensitive: true },
        operationId: 'eraseContactEverywhere',
        chapter: 'Workspaces',
        summary: 'Erase a person from all workspaces.',
        description: 'As POST /contacts/erase of the REST API, in every workspace, removed ones included.',
        body: ErasureRequest,
        response: Erasure,
        handle: async ({ operator, body }) => ({
          erased: { ...(await erasePerson(parts, checkEmail(body.email), operator.actor)) },
        }),
      }),
    ],
  }),
})
