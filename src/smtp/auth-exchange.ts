/**
 * The AUTH exchange, PLAIN and LOGIN.
 *
 * Pure; passwords are not stored. Errors are returned as the reply to send.
 * Standards: RFC 4954 (AUTH), RFC 4616 (PLAIN), RFC 4648 §4 (base64); LOGIN only ever had a draft.
 */
import { isUtf8 } from 'node:buffer'
import { REPLY } from './reply.js'

/** What follows from a client's line. */
export type AuthStep =
  | { readonly kind: 'challenge'; readonly line: string }
  | { readonly kind: 'refused'; readonly line: string }
  | { readonly kind: 'credentials'; readonly username: string; readonly password: string }

const USERNAME_PROMPT: AuthStep = { kind: 'challenge', line: '334 VXNlcm5hbWU6\r\n' }
const PASSWORD_PROMPT: AuthStep = { kind: 'challenge', line: '334 UGFzc3dvcmQ6\r\n' }
const EMPTY_CHALLENGE: AuthStep = { kind: 'challenge', line: '334 \r\n' }
const MALFORMED: AuthStep = { kind: 'refused', line: REPLY.authMalformed }

const NUL = String.fromCharCode(0)

export class AuthExchange {
  private readonly mechanism: 'PLAIN' | 'LOGIN'
  private username: string | undefined

  private constructor(mechanism: 'PLAIN' | 'LOGIN') {
    this.mechanism = mechanism
  }

  /** @param argument what follows `AUTH `, e.g. `PLAIN AGFubgBzZWNyZXQ=` */
  static begin(argument: string): { readonly exchange?: AuthExchange; readonly step: AuthStep } {
    const [name = '', initial, ...more] = argument.trimEnd().split(' ')
    const mechanism = name.toUpperCase()
    if (mechanism !== 'PLAIN' && mechanism !== 'LOGIN')
      return { step: { kind: 'refused', line: REPLY.authUnknown } }
    if (more.length > 0) return { step: MALFORMED }
    const exchange = new AuthExchange(mechanism)
    if (initial !== undefined) {
      // RFC 4954 §4: `=` is an empty initial response.
      return { exchange, step: exchange.respond(initial === '=' ? '' : initial) }
    }
    return { exchange, step: mechanism === 'PLAIN' ? EMPTY_CHALLENGE : USERNAME_PROMPT }
  }

  respond(line: string): AuthStep {
    if (line === '*') return { kind: 'refused', line: REPLY.authCancelled }
    const text = decodeBase64(line)
    if (text === undefined) return MALFORMED
    return this.mechanism === 'PLAIN' ? plainCredentials(text) : this.loginStep(text)
  }

  private loginStep(text: string): AuthStep {
    if (this.username === undefined) {
      if (text === '' || text.includes(NUL)) return MALFORMED
      this.username = text
      return PASSWORD_PROMPT
    }
    return { kind: 'credentials', username: this.username, password: text }
  }
}

/** RFC 4616 §2: authorization identity, NUL, authentication identity, NUL, password. */
function plainCredentials(text: string): AuthStep {
  const parts = text.split(NUL)
  const [authorization = '', username = '', password = ''] = parts
  if (parts.length !== 3 || username === '') return MALFORMED
  if (authorization !== '' && authorization !== username) return { kind: 'refused', line: REPLY.authForeign }
  return { kind: 'credentials', username, password }
}

/** Strict, since Node's decoder accepts nearly anything. @returns undefined unless the text is base64 of UTF-8 */
function decodeBase64(text: string): string | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined
  const octets = Buffer.from(text, 'base64')
  return isUtf8(octets) ? octets.toString('utf8') : undefined
}
