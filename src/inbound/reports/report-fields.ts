/**
 * Values out of a report by somebody who is not known: each with a bound, none believed.
 *
 * Called by the readers of DMARC and TLS reports. Pure. Fails: where a value is required, with a plain Error.
 */
import { asciiDomain } from '../../mail/address.js'

/** Characters of one value. */
const MAX_TEXT = 255
/** Year 2100; a later one is no time of a report, and would be no date at all at some point. */
const LATEST_MS = 4_102_444_800_000
export const MAX_RECORDS = 1_000

/** Control characters, NUL among them, which PostgreSQL cannot store. */
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

/** @returns 0 for what is no count */
export function reportCount(value: unknown): number {
  const count = typeof value === 'string' && /^\d{1,12}$/.test(value.trim()) ? Number(value) : value
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : 0
}

/** @throws Error */
export function reportDomain(value: unknown): string {
  const domain = asciiDomain(reportText(value).toLowerCase().replace(/\.$/, ''))
  if (domain === undefined) throw new Error('it names no domain')
  return domain
}

/** @param at ms since epoch UTC. @throws Error */
export function reportMoment(at: number): number {
  if (!(at >= 0 && at <= LATEST_MS)) throw new Error('it names no time')
  return Math.floor(at)
}

/** @throws Error */
export function requiredText(value: unknown, name: string): string {
  const text = reportText(value)
  if (text === '') throw new Error(`it has no ${name}`)
  return text
}
