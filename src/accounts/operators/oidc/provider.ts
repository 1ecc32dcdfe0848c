/**
 * The OpenID provider, as its client sees it: discovery, the authorization URL, and redeeming an authorization code.
 *
 * `openid-client` checks state, issuer (RFC 9207), PKCE, and the ID token: signature, issuer, audience, nonce and expiry, the latter by
 * the system clock with 30 s of tolerance. It sends through `world/net/fetch.ts`, each request within 5 s and 256 KB. The issuer's host and
 * port may be at any address, since the sysadmin named it; other hosts, which the provider names, must be public. The library is
 * loaded at first use.
 * Standards: OpenID Connect Core 1.0 §3.1, Discovery 1.0, RFC 6749, RFC 7636 (S256), RFC 9207.
 * Fails with `ProviderError`, whose text contains no token, code or secret.
 */
import { hash as digest } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Configuration, CustomFetch, CustomFetchOptions, IDToken } from 'openid-client'
import { describeError } from '../../../core/errors.js'
import { given } from '../../../core/given.js'
import { describeRefusal } from '../../../world/net/egress-policy.js'
import { openHttpClient, type HostLookup, type HttpClient } from '../../../world/net/fetch.js'
import type { Clock } from '../../../world/time/clock.js'
import type { OidcSettings } from './settings.js'

export interface ProviderParts {
  readonly clock: Clock
  readonly lookUp: HostLookup
  /** With an issuer, as `parseIssuer` returns it. */
  readonly settings: OidcSettings & { readonly issuer: string }
  /** Registered at the provider. */
  readonly redirectUri: string
}

/** One round to the provider; its secrets must come back with the answer. */
export interface Round {
  readonly state: string
  readonly nonce: string
  /** PKCE `code_verifier`. */
  readonly verifier: string
}

/** Claims of an ID token. */
export interface Person {
  /** As configured. */
  readonly issuer: string
  /** Identifies the person at the issuer, for good. */
  readonly subject: string
  readonly email: string | undefined
  readonly isEmailVerified: boolean
  readonly name: string
  readonly groups: readonly string[]
  /** Ms since epoch UTC, in whole seconds; undefined if the provider does not say. */
  readonly authenticatedAt: number | undefined
}

export class ProviderError extends Error {
  override readonly name = 'ProviderError'
  /** `unavailable`: no usable answer in time; `cancelled`: the provider reports an error; `refused`: a check failed. */
  readonly kind: 'unavailable' | 'cancelled' | 'refused'

  constructor(kind: ProviderError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}

export interface OpenIdProvider {
  /**
   * Where to send the browser.
   *
   * @param maxAgeS longest time since the person proved who they are; 0: they must do so now
   * @throws ProviderError
   */
  authorizationUrl(round: Round, maxAgeS: number): Promise<string>
  /** @param answer query of the callback @throws ProviderError */
  redeem(round: Round, answer: URLSearchParams): Promise<Person>
}

const REQUEST_MS = 5_000
const MAX_BYTES = 256 * 1_024
/** How long a discovery document is used; keys are fetched again after 5 minutes by the library. */
const DISCOVERY_MS = 3_600_000
/** OpenID Connect Core §2. */
const MAX_SUBJECT = 255

const library = () => import('openid-client')

export function openProvider(parts: ProviderParts): OpenIdProvider {
  const { clock, settings, redirectUri } = parts
  let known: { readonly discovered: Promise<Configuration>; readonly until: number } | undefined

  function configuration(): Promise<Configuration> {
    if (known && clock.monotonic() < known.until) return known.discovered
    const discovered = discover(parts)
    const current = (known = { discovered, until: clock.monotonic() + DISCOVERY_MS })
    discovered.catch(() => {
      if (known === current) known = undefined
    })
    return discovered
  }

  return {
    async authorizationUrl({ state, nonce, verifier }, maxAgeS) {
      const { buildAuthorizationUrl } = await library()
      try {
        const url = buildAuthorizationUrl(await configuration(), {
          redirect_uri: redirectUri,
          scope: [...new Set(['openid', ...settings.scopes])].join(' '),
          state,
          nonce,
          code_challenge: digest('sha256', verifier, 'base64url'),
          code_challenge_method: 'S256',
          max_age: String(maxAgeS),
          ...(maxAgeS === 0 ? { prompt: 'login' } : {}),
        })
        return url.href
      } catch (error) {
        throw providerError(error)
      }
    },
    async redeem({ state, nonce, verifier }, answer) {
      const { authorizationCodeGrant, fetchUserInfo } = await library()
      try {
        const config = await configuration()
        const url = new URL(`${redirectUri}?${answer.toString()}`)
        const tokens = await authorizationCodeGrant(config, url, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        })
        const token = tokens.claims()
        if (!token) throw new ProviderError('refused', 'the provider sent no ID token')
        const isComplete = token['email'] !== undefined && token[settings.groupsClaim] !== undefined
        const isAsked = !isComplete && config.serverMetadata().userinfo_endpoint !== undefined
        const more = isAsked ? await fetchUserInfo(config, tokens.access_token, token.sub) : {}
        return personOf(settings, token, more)
      } catch (error) {
        throw providerError(error)
      }
    },
  }
}

async function discover({ clock, lookUp, settings }: ProviderParts): Promise<Configuration> {
  const client = await library()
  const { issuer, clientId, ca } = settings
  const secret = await readSecret(settings)
  const http = openHttpClient(clock, {
    lookUp,
    ...(ca === '' ? {} : { authorities: await readFile(ca, 'utf8') }),
  })
  const config = await client.discovery(
    new URL(issuer),
    clientId,
    {},
    // Core §9: the default of providers that list no methods.
    (server, ...request) =>
      (server.token_endpoint_auth_methods_supported?.includes('client_secret_basic') ?? true)
        ? client.ClientSecretBasic(secret)(server, ...request)
        : client.ClientSecretPost(secret)(server, ...request),
    {
      [client.customFetch]: fetchOver(http, new URL(issuer).host),
      execute: [
        // Signatures are checked although the token came over TLS.
        client.enableNonRepudiationChecks,
        // eslint-disable-next-line @typescript-eslint/no-deprecated -- marked so because it is for development only
        ...(issuer.startsWith('http:') ? [client.allowInsecureRequests] : []),
      ],
    },
  )
  // The library accepts templates such as `https://login.microsoftonline.com/{tenantid}/v2.0`, for people of any tenant.
  if (new URL(config.serverMetadata().issuer).href !== issuer)
    throw new ProviderError('refused', 'its discovery document names another issuer')
  return config
}

async function readSecret({ clientSecret, clientSecretFile }: OidcSettings): Promise<string> {
  return clientSecretFile === '' ? clientSecret : (await readFile(clientSecretFile, 'utf8')).trim()
}

/** The library's own timeout (30 s) and redirects are of no effect: our client has its own limit and follows none. */
function fetchOver(http: HttpClient, issuerHost: string): CustomFetch {
  return async (url, { method, headers, body }) => {
    const { host } = new URL(url)
    const {
      status,
      headers: fields,
      body: octets,
      isTruncated,
    } = await http
      .request({
        method,
        url,
        headers,
        timeoutMs: REQUEST_MS,
        maxBytes: MAX_BYTES,
        ...given({ body: textOf(body), namedBy: host === issuerHost ? ('operator' as const) : undefined }),
      })
      .catch((error: unknown) => {
        throw new ProviderError('unavailable', `${host}: ${describeRefusal(error)}`)
      })
    if (isTruncated) throw new ProviderError('unavailable', `${host}: the answer is too long`)
    if (status >= 500) throw new ProviderError('unavailable', `${host} answers ${status}`)
    return new Response(status === 204 || status === 304 ? null : new Uint8Array(octets), {
      status,
      headers: fields,
    })
  }
}

/** The library sends forms, or no body. */
function textOf(body: CustomFetchOptions['body']): string | undefined {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string' || body instanceof URLSearchParams) return body.toString()
  throw new TypeError('unexpected body of a request to the provider')
}

type Claims = Readonly<Record<string, unknown>>

function personOf(settings: ProviderParts['settings'], token: IDToken, userInfo: Claims): Person {
  const { sub, auth_time: authTime } = token
  if (sub.length > MAX_SUBJECT) throw new ProviderError('refused', 'the subject is too long')
  // Address and verification must be of one source.
  const source: Claims = token['email'] === undefined ? userInfo : token
  const { email, email_verified: isVerified } = source
  const name = token['name'] ?? userInfo['name']
  return {
    // The library has compared the token's issuer with it.
    issuer: settings.issuer,
    subject: sub,
    email: typeof email === 'string' ? email : undefined,
    // Some providers write it as text.
    isEmailVerified: settings.trustEmail || isVerified === true || isVerified === 'true',
    name:
      typeof name === 'string'
        ? name
            .replace(/\p{Cc}/gu, ' ')
            .trim()
            .slice(0, 200)
        : '',
    groups: textsOf(token[settings.groupsClaim] ?? userInfo[settings.groupsClaim]),
    authenticatedAt: typeof authTime === 'number' ? authTime * 1_000 : undefined,
  }
}

function textsOf(claim: unknown): string[] {
  return (Array.isArray(claim) ? claim : [claim]).filter(one => typeof one === 'string')
}

/** The library wraps errors of the request and of its checks; their further fields hold tokens and claims, so only messages are kept. */
function providerError(thrown: unknown): ProviderError {
  const messages: string[] = []
  let error = thrown
  for (let depth = 0; error instanceof Error && depth < 5; depth++) {
    if (error instanceof ProviderError) return error
    // Of an authorization response or of the token endpoint (RFC 6749 §4.1.2.1, §5.2): a short code.
    const { error: code, name } = error as Error & { readonly error?: unknown }
    if (typeof code === 'string' && /Response.*Error$/.test(name))
      return new ProviderError(
        name === 'AuthorizationResponseError' ? 'cancelled' : 'refused',
        `the provider answers ${code.slice(0, 100)}`,
      )
    // Of JSON.parse: quotes the answer.
    if (!(error instanceof SyntaxError)) messages.push(error.message)
    error = error.cause
  }
  return new ProviderError('refused', messages.join(': ').slice(0, 500) || describeError(thrown))
}
