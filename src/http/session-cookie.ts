/**
 * Cookies of the sign-in (RFC 6265bis): of an operator's session, and of a round to an OpenID provider, which binds it to the browser.
 *
 * Over https it has the prefix `__Host-`: browsers then accept it only with Secure, without Domain and from this very host.
 */

const NAMES = {
  session: { secure: '__Host-postroad', plain: 'postroad_session' },
  oidc: { secure: '__Host-postroad-oidc', plain: 'postroad_oidc' },
} as const

type CookieKind = keyof typeof NAMES

/** @param cookies the Cookie field @returns undefined if it holds no session */
export function sessionToken(cookies: string, publicUrl: string): string | undefined {
  return cookieValue('session', cookies, publicUrl)
}

/** @param cookies the Cookie field @returns undefined if no round was begun in this browser */
export function roundBinding(cookies: string, publicUrl: string): string | undefined {
  return cookieValue('oidc', cookies, publicUrl)
}

function cookieValue(kind: CookieKind, cookies: string, publicUrl: string): string | undefined {
  const prefix = `${cookieName(kind, publicUrl)}=`
  const pairs = cookies.split(';').map(pair => pair.trim())
  const found = pairs.find(pair => pair.startsWith(prefix))?.slice(prefix.length)
  return found !== undefined && /^[\w-]{20,100}$/.test(found) ? found : undefined
}

/**
 * The Set-Cookie field of a session.
 *
 * @param publicUrl decides whether the cookie is Secure @param maxAgeMs 0 deletes it
 */
export function sessionCookie(publicUrl: string, token: string, maxAgeMs: number): string {
  return setCookie('session', publicUrl, token, maxAgeMs)
}

/** The Set-Cookie field of a round; parameters as above. Lax, because the provider's page leads back here. */
export function roundCookie(publicUrl: string, binding: string, maxAgeMs: number): string {
  return setCookie('oidc', publicUrl, binding, maxAgeMs)
}

function setCookie(kind: CookieKind, publicUrl: string, value: string, maxAgeMs: number): string {
  const maxAge = Math.floor(maxAgeMs / 1_000)
  const secure = isSecure(publicUrl) ? '; Secure' : ''
  return `${cookieName(kind, publicUrl)}=${value}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${secure}`
}

/** Only one of the names is accepted, so a cookie planted over http is ignored over https. */
function cookieName(kind: CookieKind, publicUrl: string): string {
  return NAMES[kind][isSecure(publicUrl) ? 'secure' : 'plain']
}

function isSecure(publicUrl: string): boolean {
  return publicUrl.startsWith('https:')
}
