import { given } from '../../core/given.js'
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import type { Services } from '../../db/services.js'
import { DONE, Done, IdOrNull, Moment } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import { listRoute, Reply, route, type Route } from '../../http/route.js'
import { normalizedAddress } from '../../mail/address.js'
import {
  readSuppressionEntry,
  addSuppression,
  removeSuppression,
  type ContactSuppressions,
} from './suppressions.js'
import {
  pageSuppressions,
  SUPPRESSION_REASONS,
  SUPPRESSION_SCOPES,
  type Suppression,
} from './suppression-store.js'

export interface SuppressionParts extends Pick<Services, 'database' | 'clock'> {
  readonly suppressedContacts: ContactSuppressions
  readonly onEvents?: () => void
}

const Reason = Type.Enum([...SUPPRESSION_REASONS])
const Scope = Type.Enum([...SUPPRESSION_SCOPES])

/** Long enough that an overlong address gets a specific error. */
export const Email = Type.String({ minLength: 1, maxLength: 320 })

export const NewSuppressionBody = Type.Object(
  {
    email: Email,
    reason: Type.Optional(Reason),
    scope: Type.Optional(Scope),
  },
  { additionalProperties: false, title: 'NewSuppression' },
)

export const SuppressionSchema = Type.Object(
  {
    email: Type.String({
      description:
        'An address, or a whole domain as `@example.com`; after an erasure, `erased:` and the SHA-256 of the address.',
    }),
    reason: Reason,
    scope: Type.Enum([...SUPPRESSION_SCOPES], {
      description: '`all` stops all mail; `marketing` stops marketing mail only.',
    }),
    source_message_id: IdOrNull(),
    is_sandbox: Type.Boolean(),
    created_at: Moment(),
  },
  { title: 'Suppression' },
)

export function suppressionRoutes({
  database,
  clock,
  suppressedContacts,
  onEvents = () => {},
}: SuppressionParts): Route[] {
  return [
    listRoute({
      method: 'GET',
      path: '/suppressions',
      access: 'suppressions:read',
      operationId: 'listSuppressions',
      chapter: 'Suppressions',
      summary: 'List suppressions, newest first.',
      query: Type.Object(
        {
          ...cursorQuery,
          reason: Type.Optional(Reason),
          scope: Type.Optional(Scope),
          email: Type.Optional(Email),
        },
        { additionalProperties: false },
      ),
      item: SuppressionSchema,
      async handle({ principal, query }, page) {
        const { reason, scope, email } = query
        const filter = {
          ...given({ reason, scope }),
          ...(email === undefined ? {} : { email: normalizedAddress(email) }),
        }
        // A single address is a primary key lookup.
        const reader = email === undefined ? database.slowReader : database.reader
        const found = await pageSuppressions(reader, principal.workspaceId, page, filter)
        return { ...found, items: found.items.map(one => suppressionToApi(one, principal.isSandbox)) }
      },
    }),
    route({
      method: 'POST',
      path: '/suppressions',
      access: 'suppressions:write',
      operationId: 'addSuppression',
      chapter: 'Suppressions',
      summary: 'Suppress an address or domain.',
      description:
        'Suppresses an address, or a whole domain written `@example.com`. `reason` defaults to `manual`; `scope` to `all`, or to ' +
        '`marketing` if the reason is `unsubscribe`. A new scope of `all` widens an existing `marketing` entry: the response is 200, with ' +
        'the new reason and time. If an existing entry already covers the scope, the response is 409. Addresses are stored in lower ' +
        'case, domains as A-labels. The contact with the address becomes unsubscribed (`hard_bounce`: bounced) immediately; contacts ' +
        'of a whole domain follow immediately in small audiences, within minutes in large ones.',
      body: NewSuppressionBody,
      response: SuppressionSchema,
      status: 201,
      location: ({ email }: Static<typeof SuppressionSchema>) =>
        `/suppressions?email=${encodeURIComponent(email)}`,
      otherAnswers: { 200: SuppressionSchema },
      errors: ['duplicate'],
      async handle({ principal, body }) {
        const suppression = readNewSuppression(body, principal.workspaceId, clock.now())
        const result = await database.write(tx => {
          tx.onCommit(onEvents)
          return addSuppression(tx, suppression, suppressedContacts, principal.actor, principal.isSandbox)
        })
        return new Reply(result === 'added' ? 201 : 200, suppressionToApi(suppression, principal.isSandbox))
      },
    }),
    route({
      method: 'DELETE',
      path: '/suppressions/:email',
      access: 'suppressions:write',
      operationId: 'removeSuppression',
      chapter: 'Suppressions',
      summary: 'Remove a suppression.',
      description:
        'Resubscribes a contact who was unsubscribed only by this entry. Contacts who unsubscribed or complained themselves stay ' +
        'unsubscribed until `subscribed` is set.',
      params: Type.Object({ email: Email }),
      response: Done,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const email = normalizedAddress(params.email)
        const removal = { workspaceId: principal.workspaceId, email, createdAt: clock.now() }
        await database.write(tx => {
          tx.onCommit(onEvents)
          return removeSuppression(tx, removal, suppressedContacts, principal.actor, principal.isSandbox)
        })
        return DONE
      },
    }),
  ]
}

/** @param path of the address in the request @throws AppError validation_error */
export function readNewSuppression(
  { email, reason = 'manual', scope }: Static<typeof NewSuppressionBody>,
  workspaceId: string,
  now: number,
  path = 'email',
): Suppression {
  return {
    workspaceId,
    email: readSuppressionEntry(email, path),
    reason,
    scope: scope ?? (reason === 'unsubscribe' ? 'marketing' : 'all'),
    sourceMessageId: null,
    createdAt: now,
  }
}

export function suppressionToApi(
  suppression: Suppression,
  isSandbox: boolean,
): Static<typeof SuppressionSchema> {
  return {
    email: suppression.email,
    reason: suppression.reason,
    scope: suppression.scope,
    source_message_id: suppression.sourceMessageId,
    is_sandbox: isSandbox,
    created_at: isoTime(suppression.createdAt),
  }
}
