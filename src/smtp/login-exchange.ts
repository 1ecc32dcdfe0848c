/**
 * One AUTH exchange: what the client has sent so far, and what is asked of it next. PLAIN and LOGIN.
 *
 * Called by the session for AUTH and for each line that answers a challenge. Pure; a password passes through and is kept
 * nowhere else. Fails: never throws; a fault is the reply to send.
 * Standards: RFC 4954 (AUTH), RFC 4616 (PLAIN), RFC 4648 §4 (base64); LOGIN is a custom that outlived its draft.
 */
import { isUtf8 } from 'node:buffer'
import { REPLY } from './reply.js'

/** What comes of a line: a challenge or refusal to send, or credentials to be checked. */
export type LoginStep =
  | { readonly kind: 'challenge'; readonly line: string }
  | { readonly kind: 'refused'; readonly line: string }
  | { readonly kind: 'credentials'; readonly username: string; readonly password: string }

const USERNAME_PROMPT: LoginStep = { kind: 'challenge', line: '334 VXNlcm5hbWU6\r\n' }
const PASSWORD_PROMPT: LoginStep = { kind: 'challenge', line: '334 UGFzc3dvcmQ6\r\n' }
const EMPTY_CHALLENGE: LoginStep = { kind: 'challenge', line: '334 \r\n' }
const MALFORMED: LoginStep = { kind: 'refused', line: REPLY.authMalformed }

const NUL = String.fromCharCode(0)

export class LoginExchange {
  private readonly mechanism: 'PLAIN' | 'LOGIN'
  private username: string | undefined

  private constructor(mechanism: 'PLAIN' | 'LOGIN') {
    this.mechanism = mechanism
  }

  /** @param argument what follows `AUTH `, e.g. `PLAIN AGFubgBzZWNyZXQ=` */
  static begin(argument: string): { readonly exchange?: LoginExchange; readonly step: LoginStep } {
    const [name = '', initial, ...more] = argument.trimEnd().split(' ')
    const mechanism = name.toUpperCase()
    if (mechanism !== 'PLAIN' && mechanism !== 'LOGIN')
      return { step: { kind: 'refused', line: REPLY.authUnknown } }
    if (more.length > 0) return { step: MALFORMED }
    const exchange = new LoginExchange(mechanism)
    if (initial !== undefined) {
      // RFC 4954 §4: `=` is an initial response of no octets.
      return { exchange, step: exchange.answer(initial === '=' ? '' : initial) }
    }
    return { exchange, step: mechanism === 'PLAIN' ? EMPTY_CHALLENGE : USERNAME_PROMPT }
  }

  /** A line of the client's. */
  answer(line: string): LoginStep {
    if (line === '*') return { kind: 'refused', line: REPLY.authCancelled }
    const text = decodeBase64(line)
    if (text === undefined) return MALFORMED
    return this.mechanism === 'PLAIN' ? plainCredentials(text) : this.loginStep(text)
  }

  private loginStep(text: string): LoginStep {
    if (this.username === undefined) {
      if (text === '' || text.includes(NUL)) return MALFORMED
      this.username = text
      return PASSWORD_PROMPT
    }
    return { kind: 'credentials', username: this.username, password: text }
  }
}

/** RFC 4616 §2: authorization identity, NUL, authentication identity, NUL, password. */
function plainCredentials(text: string): LoginStep {
  const parts = text.split(NUL)
  const [authorization = '', username = '', password = ''] = parts
  if (parts.length !== 3 || username === '') return MALFORMED
  if (authorization !== '' && authorization !== username) return { kind: 'refused', line: REPLY.authForeign }
  return { kind: 'credentials', username, password }
}

/** Strict: Node's decoder takes nearly anything. @returns undefined where it is no base64 of UTF-8 */
function decodeBase64(text: string): string | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined
  const octets = Buffer.from(text, 'base64')
  return isUtf8(octets) ? octets.toString('utf8') : undefined
}
