/**
 * Routes that sign in and out.
 *
 * They need no session, so the gate only checks that a browser's request comes from our own pages: otherwise another site could sign a
 * visitor in to an account of its choice. The session's token is in the cookie and nowhere else; each answer that opens or confirms a
 * session sets a new one.
 */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import { adminRoute } from '../../http/admin-route.js'
import { Address, DONE, Done, Moment, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { openRoute, Reply, type Route } from '../../http/route.js'
import { sessionCookie, sessionToken } from '../../http/session-cookie.js'
import { isoTime } from '../../core/moments.js'
import { SESSION_LIFETIME } from './access.js'
import { RoleName } from './answers.js'
import { previewLink } from './invitations.js'
import type { LostPasswords } from './lost-password.js'
import {
  confirmSignIn,
  signInWithCode,
  signInWithLink,
  signInWithPassword,
  signOut,
  type Client,
  type SignedIn,
  type SignInParts,
} from './sign-in.js'

export interface SessionRouteParts extends SignInParts {
  readonly publicUrl: string
}

interface LostParts {
  readonly lostPasswords: LostPasswords
}

/** Of a request. */
type Headers = { readonly peer: string; readonly header: (name: string) => string }

export const SignedInSchema = Type.Object(
  {
    needs_code: Type.Boolean({
      description:
        'Whether `POST /session/code` must follow within 5 minutes; until then the session is of no use.',
    }),
  },
  { title: 'SignedIn' },
)

const LinkPreviewSchema = Type.Object(
  {
    kind: Type.Enum(['sign_in', 'invitation', 'reset', 'join'], {
      description: '`join`: an invitation to a workspace.',
    }),
    email: Address({ description: 'Whose account it opens.' }),
    workspace: TextOrNull({ description: 'Name of the workspace, for `join`.' }),
    role: orNull(RoleName(), { description: 'In that workspace.' }),
    needs_sign_in: Type.Boolean({
      description:
        'The account exists: sign in with it, then accept the role with `POST /me/invitations`. Otherwise `POST /session/link` signs in.',
    }),
    expires_at: Moment(),
  },
  { title: 'LinkPreview' },
)

const LinkBody = Type.Object(
  { token: Type.String({ minLength: 20, maxLength: 100, description: 'The last part of the link.' }) },
  { additionalProperties: false },
)

const Password = Type.String({ minLength: 1, maxLength: 256 })
const Code = Type.String({
  minLength: 6,
  maxLength: 40,
  description: 'Six digits of the authenticator app, or a recovery code.',
})

export function sessionRoutes(parts: SessionRouteParts & LostParts): Route[] {
  const { publicUrl, lostPasswords } = parts
  const common = { chapter: 'Sign-in', api: 'admin', access: 'public', isLimited: true } as const
  return [
    openRoute({
      ...common,
      method: 'POST',
      path: '/session',
      operationId: 'signIn',
      summary: 'Sign in with a password.',
      body: Type.Object(
        { email: Type.String({ minLength: 1, maxLength: 254 }), password: Password },
        { additionalProperties: false },
      ),
      response: SignedInSchema,
      errors: ['unauthorized', 'forbidden', 'unavailable'],
      handle: async request =>
        opened(parts, request, await signInWithPassword(parts, request.body, clientOf(request))),
    }),
    openRoute({
      ...common,
      method: 'POST',
      path: '/session/code',
      operationId: 'signInWithCode',
      summary: 'Complete a sign-in with a code.',
      body: Type.Object({ code: Code }, { additionalProperties: false }),
      response: SignedInSchema,
      errors: ['unauthorized', 'forbidden'],
      async handle(request) {
        const pending = sessionToken(request.header('Cookie'), publicUrl)
        if (pending === undefined) throw new AppError('unauthorized', 'sign in with your password first')
        const signedIn = await signInWithCode(parts, pending, request.body.code, clientOf(request))
        return cookieReply(publicUrl, signedIn)
      },
    }),
    openRoute({
      ...common,
      method: 'POST',
      path: '/session/link/preview',
      operationId: 'previewLink',
      summary: 'Show whose account a link opens.',
      description: 'Uses nothing up. The console shows it before anybody is signed in.',
      body: LinkBody,
      response: LinkPreviewSchema,
      errors: ['unauthorized', 'forbidden'],
      async handle({ body }) {
        const { kind, email, workspace, role, needsSignIn, expiresAt } = await previewLink(parts, body.token)
        const expires_at = isoTime(expiresAt)
        return { kind, email, workspace, role, needs_sign_in: needsSignIn, expires_at }
      },
    }),
    openRoute({
      ...common,
      method: 'POST',
      path: '/session/link',
      operationId: 'signInWithLink',
      summary: 'Sign in with a one-time link.',
      description:
        'Then set a password or a passkey: the link works once. `conflict`: it adds a role to an account that exists.',
      body: LinkBody,
      response: SignedInSchema,
      errors: ['unauthorized', 'forbidden', 'conflict'],
      handle: async request =>
        opened(parts, request, await signInWithLink(parts, request.body.token, clientOf(request))),
    }),
    openRoute({
      ...common,
      method: 'POST',
      path: '/session/lost',
      operationId: 'mailSignInLink',
      summary: 'Mail a link to somebody who lost the password.',
      description:
        'If the address has an account and was proved, it gets a one-time link, valid for an hour. The answer does not tell. The code of an authenticator app is asked for ' +
        'after the link as well.',
      body: Type.Object(
        { email: Type.String({ minLength: 1, maxLength: 254 }) },
        { additionalProperties: false, title: 'LostPassword' },
      ),
      example: { email: 'ann@example.com' },
      response: Done,
      errors: ['forbidden', 'rate_limited'],
      async handle({ body, peer }) {
        await lostPasswords.ask(body.email.trim(), peer)
        return DONE
      },
    }),
    adminRoute({
      method: 'POST',
      path: '/session/confirm',
      access: { permission: 'any', scope: 'appliance' },
      operationId: 'confirmSignIn',
      chapter: 'Sign-in',
      summary: 'Confirm who you are.',
      description:
        'For actions that answer `sign_in_required`: they need a sign-in within the last 15 minutes. Without password and codes: ' +
        '`POST /session/confirm/passkey`, or `GET /session/oidc/start?confirm=true`.',
      body: Type.Object(
        { password: Type.Optional(Password), code: Type.Optional(Code) },
        { additionalProperties: false, minProperties: 1, maxProperties: 1 },
      ),
      response: Done,
      errors: ['unauthorized', 'conflict'],
      async handle(request) {
        const { operator, body } = request
        if (operator.credential.kind !== 'session')
          throw new AppError('conflict', 'only sessions are confirmed; tokens need no confirmation')
        const proof = body.password === undefined ? { code: body.code ?? '' } : { password: body.password }
        const token = await confirmSignIn(parts, operator, proof, clientOf(request))
        return new Reply(200, { success: true as const }, setCookie(publicUrl, token, SESSION_LIFETIME.maxMs))
      },
    }),
    openRoute({
      ...common,
      method: 'DELETE',
      path: '/session',
      operationId: 'signOut',
      summary: 'Sign out.',
      response: Done,
      errors: ['forbidden'],
      async handle({ header }) {
        const token = sessionToken(header('Cookie'), publicUrl)
        if (token !== undefined) await signOut(parts, token)
        return new Reply(200, { success: true as const }, setCookie(publicUrl, '', 0))
      },
    }),
  ]
}

export function clientOf({ peer, header }: Headers): Client {
  return { peer, userAgent: header('User-Agent') }
}

/** The answer to a completed step. It ends the session that the browser had before. */
export async function opened(
  parts: SessionRouteParts,
  { header }: Headers,
  signedIn: SignedIn,
): Promise<Reply<{ needs_code: boolean }>> {
  const previous = sessionToken(header('Cookie'), parts.publicUrl)
  if (previous !== undefined) await signOut(parts, previous)
  return cookieReply(parts.publicUrl, signedIn)
}

function cookieReply(publicUrl: string, { token, needsCode }: SignedIn): Reply<{ needs_code: boolean }> {
  const lifetimeMs = needsCode ? SESSION_LIFETIME.pendingMs : SESSION_LIFETIME.maxMs
  return new Reply(200, { needs_code: needsCode }, setCookie(publicUrl, token, lifetimeMs))
}

export function setCookie(
  publicUrl: string,
  token: string,
  maxAgeMs: number,
): Readonly<Record<string, string>> {
  return { 'Set-Cookie': sessionCookie(publicUrl, token, maxAgeMs) }
}
