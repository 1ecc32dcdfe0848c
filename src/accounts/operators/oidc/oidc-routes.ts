/**
 * Routes of signing in with OpenID Connect: a browser goes to `start`, from there to the provider, and comes back to `callback`.
 *
 * Both answer with a redirect; a refusal leads to a page of the console with its code in the query. Without `[oidc]` they do not exist.
 */
import Type from 'typebox'
import { AppError } from '../../../core/errors.js'
import { given } from '../../../core/given.js'
import { orNull } from '../../../http/answer/answer-fields.js'
import { ADMIN_BASE, openRoute, Reply, type Route } from '../../../http/route.js'
import { roundBinding, roundCookie, sessionCookie, sessionToken } from '../../../http/session-cookie.js'
import { openHostLookup, type SystemLookup } from '../../../world/dns/host-lookup.js'
import type { Resolver } from '../../../world/dns/dns.js'
import type { Log } from '../../../world/log.js'
import { SESSION_LIFETIME } from '../access.js'
import { clientOf, type SessionRouteParts } from '../session-routes.js'
import { signOut } from '../sign-in.js'
import { beginRound, finishRound, REFUSALS, ROUND_MS, type OidcParts } from './oidc-sign-in.js'
import { openProvider } from './provider.js'
import type { OidcSettings } from './settings.js'

export interface OidcRouteParts extends SessionRouteParts {
  readonly log: Log
  readonly freshResolver: () => Resolver
  readonly systemLookup: SystemLookup
}

const CALLBACK = '/session/oidc/callback'
const HOME = '/console/'
const SIGN_IN_PAGE = '/console/#/sign-in'

/** Of the query of the page that a refusal leads to. */
const ERROR_FIELD = 'oidc_error'
const REMOVED_FIELD = 'credentials_removed'

const SignInMethods = Type.Object(
  {
    password: Type.Boolean(),
    passkey: Type.Boolean(),
    oidc: orNull(Type.Object({ name: Type.String({ description: 'Label of the button.' }) }), {
      description: 'OpenID Connect, with `GET /session/oidc/start`; null if it is not configured.',
    }),
    signed_in: Type.Boolean({
      description: 'Whether the request has a session, or another valid credential.',
    }),
  },
  { title: 'SignInMethods' },
)

const Redirect = Type.Object({ location: Type.String() }, { title: 'Redirect' })

/** A path below the console, so that a link cannot lead elsewhere. */
const ReturnTo = Type.String({
  maxLength: 500,
  pattern: '^/console/[\\w\\-./~?=&%#:@+,]*$',
  description: 'Page of the console to return to; default `/console/`.',
})

/** Providers add fields. */
const Answer = Type.Object(
  {
    state: Type.Optional(Type.String({ maxLength: 200 })),
    code: Type.Optional(Type.String({ maxLength: 8_000 })),
    iss: Type.Optional(Type.String({ maxLength: 2_000, description: 'RFC 9207.' })),
    error: Type.Optional(Type.String({ maxLength: 200 })),
    error_description: Type.Optional(Type.String({ maxLength: 4_000 })),
  },
  { additionalProperties: true },
)

const CODES = Object.entries(REFUSALS)
  .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
  .join('; ')

export function oidcRoutes(parts: OidcRouteParts, settings: OidcSettings): Route[] {
  const oidc = openOidc(parts, settings)
  const common = {
    chapter: 'Sign-in',
    api: 'admin',
    access: 'public',
    isLimited: true,
    method: 'GET',
  } as const
  const redirect = { ...common, status: 302, response: Redirect } as const
  return [
    openRoute({
      ...common,
      path: '/session/methods',
      operationId: 'getSignInMethods',
      summary: 'Get the ways to sign in.',
      response: SignInMethods,
      // Nobody but who has a session is known.
      knows: () => false,
      handle: async ({ isKnown = false }) => ({
        password: true,
        passkey: true,
        oidc: oidc ? { name: settings.name } : null,
        signed_in: isKnown,
      }),
    }),
    openRoute({
      ...redirect,
      path: '/session/oidc/start',
      operationId: 'startOidcSignIn',
      summary: 'Sign in with OpenID Connect.',
      description:
        'For browsers: redirects to the provider. With `confirm=true` the person proves there again who they are, for actions that answer `sign_in_required`. ' +
        `Then, or if it fails, the browser returns to the console; \`${ERROR_FIELD}\` in the query says why it failed, and \`${REMOVED_FIELD}=true\` that what was set up in the account before its address was proved was removed. ${CODES}.`,
      query: Type.Object(
        {
          confirm: Type.Optional(
            Type.Boolean({ description: 'Confirm the session of this browser instead of opening one.' }),
          ),
          return_to: Type.Optional(ReturnTo),
        },
        { additionalProperties: false },
      ),
      errors: ['unauthorized', 'not_found'],
      handle: request => start(requireOidc(oidc), parts, request),
    }),
    openRoute({
      ...redirect,
      path: CALLBACK,
      operationId: 'finishOidcSignIn',
      summary: 'Complete a sign-in with OpenID Connect.',
      description: 'The redirect URI to register at the provider: `public_url` and this path.',
      query: Answer,
      errors: ['not_found'],
      handle: request => finish(requireOidc(oidc), parts, request),
    }),
  ]
}

function openOidc(parts: OidcRouteParts, settings: OidcSettings): OidcParts | undefined {
  const { issuer } = settings
  if (issuer === undefined) return undefined
  const provider = openProvider({
    clock: parts.clock,
    lookUp: openHostLookup(parts.freshResolver(), parts.systemLookup),
    settings: { ...settings, issuer },
    redirectUri: `${parts.publicUrl}${ADMIN_BASE}${CALLBACK}`,
  })
  return { ...parts, provider, settings }
}

interface Asked {
  readonly peer: string
  readonly header: (name: string) => string
}

async function start(
  oidc: OidcParts,
  { publicUrl }: OidcRouteParts,
  { query, ...asked }: Asked & { readonly query: { confirm?: boolean; return_to?: string } },
) {
  const { confirm = false, return_to: returnTo = HOME } = query
  const session = confirm ? sessionToken(asked.header('Cookie'), publicUrl) : undefined
  if (confirm && session === undefined) throw new AppError('unauthorized', 'there is no session to confirm')
  const begun = await beginRound(oidc, { returnTo, ...given({ session }) }, clientOf(asked))
  if ('refusal' in begun)
    return redirectTo(publicUrl, withError(confirm ? returnTo : SIGN_IN_PAGE, begun.refusal))
  return redirectReply(begun.url, [roundCookie(publicUrl, begun.binding, ROUND_MS)])
}

async function finish(
  oidc: OidcParts,
  { publicUrl }: OidcRouteParts,
  { query, ...asked }: Asked & { readonly query: Readonly<Record<string, unknown>> },
) {
  const cookies = asked.header('Cookie')
  const session = sessionToken(cookies, publicUrl)
  const answer = new URLSearchParams()
  for (const name of Object.keys(Answer.properties)) {
    const value = query[name]
    if (typeof value === 'string') answer.set(name, value)
  }
  const returned = { answer, session, binding: roundBinding(cookies, publicUrl) }
  const end = await finishRound(oidc, returned, clientOf(asked))
  const used = roundCookie(publicUrl, '', 0)
  if ('refusal' in end)
    return redirectTo(publicUrl, withError(end.returnTo ?? SIGN_IN_PAGE, end.refusal), [used])
  // The session that the browser had before, unless it has got this new token.
  if (session !== undefined) await signOut(oidc, session)
  const cookie = sessionCookie(publicUrl, end.token, SESSION_LIFETIME.maxMs)
  const page = end.isAccessRemoved ? withField(end.returnTo, REMOVED_FIELD, 'true') : end.returnTo
  return redirectTo(publicUrl, page, [used, cookie])
}

/** @throws AppError not_found */
function requireOidc(oidc: OidcParts | undefined): OidcParts {
  if (!oidc) throw new AppError('not_found', 'sign-in with OpenID Connect is not configured')
  return oidc
}

function withError(path: string, code: string): string {
  return withField(path, ERROR_FIELD, code)
}

/** @param path with its fragment, which stays the last part */
function withField(path: string, field: string, value: string): string {
  const [page = '', ...fragment] = path.split('#')
  const separator = page.includes('?') ? '&' : '?'
  return [`${page}${separator}${field}=${value}`, ...fragment].join('#')
}

function redirectTo(publicUrl: string, path: string, cookies: readonly string[] = []) {
  return redirectReply(publicUrl + path, cookies)
}

function redirectReply(location: string, cookies: readonly string[]) {
  const headers = cookies.length === 0 ? {} : { 'Set-Cookie': [...cookies] }
  return new Reply(302, { location }, { Location: location, ...headers })
}
