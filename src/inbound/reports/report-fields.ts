/** Bounded values of reports from unauthenticated senders. */
import { asciiDomain } from '../../mail/address.js'

const MAX_TEXT = 255
/** Year 2100. Bounds the value so that it is a valid date. */
const LATEST_MS = 4_102_444_800_000
export const MAX_RECORDS = 1_000

/** PostgreSQL text cannot contain NUL. */
// eslint-disable-next-line no-control-regex -- control characters are what is looked for
const CONTROLS = /[\u0000-\u001f\u007f]+/g

export function reportText(value: unknown): string {
  return typeof value === 'string'
    ? value
        .slice(0, 4 * MAX_TEXT)
        .replace(CONTROLS, ' ')
        .trim()
        .slice(0, MAX_TEXT)
    : ''
}

/** @returns 0 if it is not a count */
export function reportCount(value: unknown): number {
  const count = typeof value === 'string' && /^\d{1,12}$/.test(value.trim()) ? Number(value) : value
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : 0
}

/** @throws Error */
export function reportDomain(value: unknown): string {
  const domain = asciiDomain(reportText(value).toLowerCase().replace(/\.$/, ''))
  if (domain === undefined) throw new Error(`invalid domain: ${reportText(value)}`)
  return domain
}

/**
 * @param at ms since epoch UTC
 * @throws Error
 */
export function reportMoment(at: number): number {
  if (!(at >= 0 && at <= LATEST_MS)) throw new Error('invalid report period')
  return Math.floor(at)
}

/** @throws Error */
export function requiredText(value: unknown, name: string): string {
  const text = reportText(value)
  if (text === '') throw new Error(`missing ${name}`)
  return text
}
