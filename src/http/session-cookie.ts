/**
 * The cookie of an operator's session (RFC 6265bis).
 *
 * Over https it has the prefix `__Host-`: browsers then accept it only with Secure, without Domain and from this very host.
 */

const SECURE_NAME = '__Host-postroad'
const PLAIN_NAME = 'postroad_session'

/** @param cookies the Cookie field @returns undefined if it holds no session */
export function sessionToken(cookies: string, publicUrl: string): string | undefined {
  const prefix = `${cookieName(publicUrl)}=`
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
  const name = cookieName(publicUrl)
  const maxAge = Math.floor(maxAgeMs / 1_000)
  return `${name}=${token}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${name === SECURE_NAME ? '; Secure' : ''}`
}

/** Only one of the names is accepted, so a cookie planted over http is ignored over https. */
function cookieName(publicUrl: string): string {
  return publicUrl.startsWith('https:') ? SECURE_NAME : PLAIN_NAME
}
