/** `POST /contacts/erase`, in the chapter of contacts: here, since erasing a person takes every table there is. */
import Type from 'typebox'
import { checkEmail } from '../../audience/checks.js'
import { keyActor } from '../../events/activity-store.js'
import { route } from '../../http/route.js'
import { resource } from '../../resource/resource.js'
import { erasePerson, type ErasureParts } from './erase.js'

export const erasure = resource({
  open: (parts: ErasureParts) => ({
    routes: [
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
          'survives as a hash of the address and still applies. The answer counts the erased rows; repeating the request erases nothing. ' +
          'Restoring an older backup erases the person again.',
        body: Type.Object(
          { email: Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' }) },
          { additionalProperties: false, title: 'ErasureRequest' },
        ),
        response: Type.Object(
          {
            erased: Type.Record(Type.String(), Type.Integer(), {
              description: 'Rows erased or anonymised, by kind.',
            }),
          },
          { title: 'Erasure' },
        ),
        handle: async ({ principal, body }) => ({
          erased: {
            ...(await erasePerson(parts, checkEmail(body.email), keyActor(principal), principal.workspaceId)),
          },
        }),
      }),
    ],
  }),
})
