/** One-time codes of authenticator apps (TOTP, RFC 6238 over RFC 4226) and the recovery codes that replace a lost app. Pure. */
import { createHmac, hash as digest, timingSafeEqual } from 'node:crypto'
import type { Random } from '../../world/random.js'

/** Defaults of every authenticator app; many ignore other values in the URL. */
const STEP_MS = 30_000
const DIGITS = 6
/** RFC 4226 §4, R6: 160 bits. */
const SECRET_BYTES = 20
/** Steps by which the clocks may differ (RFC 6238 §5.2). */
const DRIFT_STEPS = 1

const RECOVERY_CODES = 10
/** 80 bits, so that a plain SHA-256 of a code cannot be reversed. */
const RECOVERY_BYTES = 10

/** RFC 4648 §6. */
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

export function newTotpSecret(random: Random): Buffer {
  return random.bytes(SECRET_BYTES)
}

/** Content of the QR code, in the key URI format of authenticator apps. */
export function totpUrl(secret: Buffer, issuer: string, email: string): string {
  const query = new URLSearchParams({ secret: base32(secret), issuer, digits: String(DIGITS), period: '30' })
  return `otpauth://totp/${encodeURIComponent(issuer)}:${encodeURIComponent(email)}?${query.toString()}`
}

/**
 * @param usedStep time step of the last accepted code; codes of this step and earlier ones are replays (RFC 6238 §5.2)
 * @returns the time step of the code; undefined if it is wrong, out of date or a replay
 */
export function matchTotp(secret: Buffer, code: string, nowMs: number, usedStep: number): number | undefined {
  const current = Math.floor(nowMs / STEP_MS)
  for (let step = current - DRIFT_STEPS; step <= current + DRIFT_STEPS; step++)
    if (step > usedStep && isSame(totpCode(secret, step), code)) return step
  return undefined
}

/** RFC 4226 §5.3. */
export function totpCode(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const offset = (mac.at(-1) ?? 0) & 0x0f
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0')
}

/** Each replaces one TOTP code, once: `ABCD-EFGH-IJKL-MNOP`. */
export function newRecoveryCodes(random: Random): string[] {
  return Array.from({ length: RECOVERY_CODES }, () =>
    base32(random.bytes(RECOVERY_BYTES)).replace(/.{4}(?=.)/g, '$&-'),
  )
}

/** Ignores case, spaces and hyphens, as people type codes from paper. */
export function hashRecoveryCode(code: string): string {
  return digest('sha256', code.toUpperCase().replace(/[\s-]/g, ''), 'hex')
}

/** Without padding. */
export function base32(bytes: Buffer): string {
  let text = ''
  let bits = 0
  let value = 0
  for (const byte of bytes) {
    value = (value << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += BASE32.charAt((value >>> (bits - 5)) & 31)
    value &= (1 << bits) - 1
  }
  return bits > 0 ? text + BASE32.charAt((value << (5 - bits)) & 31) : text
}

/** @returns undefined if it is not the base32 of a secret made by `newTotpSecret` */
export function fromBase32(text: string): Buffer | undefined {
  if (!/^[A-Z2-7]{32}$/.test(text)) return undefined
  const bits = Array.from(text, letter => BASE32.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map(octet => Number.parseInt(octet, 2)))
}

function isSame(expected: string, given: string): boolean {
  const [a, b] = [Buffer.from(expected), Buffer.from(given)]
  return a.length === b.length && timingSafeEqual(a, b)
}
