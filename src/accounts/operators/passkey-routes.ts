/** Routes of passkeys: registering them in a session, signing in and confirming with them. */
import Type, { type Static, type TObject } from 'typebox'
import { given } from '../../core/given.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import { DONE, Done, Moment, MomentOrNull } from '../../http/answer/answer-fields.js'
import { adminListRoute, adminRoute } from '../../http/admin-route.js'
import { listingOf, PageQuery } from '../../http/pagination.js'
import { openRoute, Reply, type AdminAccess, type Route } from '../../http/route.js'
import { SESSION_LIFETIME } from './access.js'
import { requireSession } from './me-routes.js'
import { listPasskeys, type Passkey } from './operator-store.js'
import {
  challengePasskey,
  confirmWithPasskey,
  proposePasskey,
  registerPasskey,
  removePasskey,
  signInWithPasskey,
  type PasskeyParts,
} from './passkeys.js'
import { clientOf, opened, setCookie, SignedInSchema, type SessionRouteParts } from './session-routes.js'

const OWN: AdminAccess = { permission: 'any', scope: 'appliance' }
const OWN_SENSITIVE: AdminAccess = { ...OWN, isSensitive: true }

const Encoded = (maxLength: number) => Type.String({ minLength: 1, maxLength, description: 'Base64url.' })

/** As browsers make it: `credential.toJSON()`. Fields that are not checked are ignored. */
const credential = <R extends TObject>(response: R, title: string) =>
  Type.Object(
    {
      id: Encoded(1_500),
      rawId: Encoded(1_500),
      type: Type.Literal('public-key'),
      response,
      clientExtensionResults: Type.Optional(Type.Object({})),
    },
    { title, description: 'As `credential.toJSON()` returns it.' },
  )

const Registered = credential(
  Type.Object({
    clientDataJSON: Encoded(10_000),
    attestationObject: Encoded(50_000),
    transports: Type.Optional(Type.Array(Type.String({ maxLength: 50 }), { maxItems: 20 })),
  }),
  'PasskeyRegistration',
)

const Asserted = credential(
  Type.Object({
    clientDataJSON: Encoded(10_000),
    authenticatorData: Encoded(10_000),
    signature: Encoded(10_000),
  }),
  'PasskeyAssertion',
)

const Options = Type.Object(
  { challenge: Type.String({ description: 'Valid for 5 minutes, once.' }) },
  {
    title: 'PasskeyOptions',
    additionalProperties: true,
    description: 'For `PublicKeyCredential.parseCreationOptionsFromJSON` or `parseRequestOptionsFromJSON`.',
  },
)

const PasskeySchema = Type.Object(
  { id: Type.String(), name: Type.String(), created_at: Moment(), last_used_at: MomentOrNull() },
  { title: 'Passkey' },
)

type RouteParts = PasskeyParts & {
  /** Issuer of the OpenID provider; undefined without one. */
  readonly oidcIssuer: string | undefined
}

export function passkeyRoutes(parts: SessionRouteParts & RouteParts): Route[] {
  return [...signInRoutes(parts), ...ownRoutes(parts)]
}

function signInRoutes(parts: SessionRouteParts & PasskeyParts): Route[] {
  const common = { chapter: 'Sign-in', api: 'admin', access: 'public', isLimited: true } as const
  return [
    openRoute({
      ...common,
      method: 'POST',
      path: '/session/passkey/options',
      operationId: 'getPasskeyChallenge',
      summary: 'Begin a sign-in with a passkey.',
      response: Options,
      errors: ['forbidden'],
      handle: async () => ({ ...(await challengePasskey(parts)) }),
    }),
    openRoute({
      ...common,
      method: 'POST',
      path: '/session/passkey',
      operationId: 'signInWithPasskey',
      summary: 'Sign in with a passkey.',
      body: Asserted,
      response: SignedInSchema,
      errors: ['unauthorized', 'forbidden'],
      handle: async request =>
        opened(parts, request, await signInWithPasskey(parts, assertionOf(request.body), clientOf(request))),
    }),
    adminRoute({
      chapter: 'Sign-in',
      method: 'POST',
      path: '/session/confirm/passkey',
      access: OWN,
      operationId: 'confirmWithPasskey',
      summary: 'Confirm who you are with a passkey.',
      body: Asserted,
      response: Done,
      errors: ['unauthorized', 'conflict'],
      async handle(request) {
        const { operator, body } = request
        requireSession(operator)
        const token = await confirmWithPasskey(parts, operator, assertionOf(body), clientOf(request))
        const cookie = setCookie(parts.publicUrl, token, SESSION_LIFETIME.maxMs)
        return new Reply(200, DONE, cookie)
      },
    }),
  ]
}

function ownRoutes(parts: RouteParts): Route[] {
  const common = { chapter: 'Your account' }
  return [
    adminListRoute({
      ...common,
      method: 'GET',
      path: '/me/passkeys',
      access: OWN,
      operationId: 'listMyPasskeys',
      summary: 'List your passkeys.',
      query: PageQuery,
      item: PasskeySchema,
      async handle({ operator }, page) {
        return listingOf(
          await listPasskeys(parts.database.reader, operator.id),
          page,
          passkeyToApi,
          ({ id }) => id,
        )
      },
    }),
    adminRoute({
      ...common,
      method: 'POST',
      path: '/me/passkeys/options',
      access: OWN_SENSITIVE,
      operationId: 'proposePasskey',
      summary: 'Begin to register a passkey.',
      response: Options,
      errors: ['conflict', 'limit_reached'],
      async handle({ operator }) {
        requireSession(operator)
        return { ...(await proposePasskey(parts, operator)) }
      },
    }),
    adminRoute({
      ...common,
      method: 'POST',
      path: '/me/passkeys',
      access: OWN_SENSITIVE,
      operationId: 'registerPasskey',
      summary: 'Register a passkey.',
      body: Type.Object(
        {
          name: Type.String({ minLength: 1, maxLength: 100, description: 'E.g. the device it is on.' }),
          response: Registered,
        },
        { additionalProperties: false },
      ),
      status: 201,
      response: PasskeySchema,
      errors: ['conflict', 'duplicate'],
      async handle({ operator, body: { name, response } }) {
        requireSession(operator)
        const passkey = await registerPasskey(parts, operator, name, registrationOf(response))
        return passkeyToApi(passkey)
      },
    }),
    adminRoute({
      ...common,
      method: 'DELETE',
      path: '/me/passkeys/:id',
      access: OWN_SENSITIVE,
      operationId: 'removePasskey',
      summary: 'Remove a passkey.',
      description:
        'Also ends the sessions that it opened, except this one. The only way to sign in cannot be removed.',
      params: Type.Object({ id: Type.String({ maxLength: 1_500 }) }),
      response: Done,
      errors: ['conflict'],
      async handle({ operator, params: { id } }) {
        requireSession(operator)
        await removePasskey(parts, operator, id, parts.oidcIssuer)
        return DONE
      },
    }),
  ]
}

function registrationOf({ response, ...rest }: Static<typeof Registered>) {
  const { transports, ...signed } = response
  return { ...rest, response: { ...signed, ...given({ transports }) }, clientExtensionResults: {} }
}

function assertionOf(body: Static<typeof Asserted>) {
  return { ...body, clientExtensionResults: {} }
}

function passkeyToApi({ id, name, createdAt, lastUsedAt }: Passkey): Static<typeof PasskeySchema> {
  return { id, name, created_at: isoTime(createdAt), last_used_at: isoTimeOrNull(lastUsedAt) }
}
