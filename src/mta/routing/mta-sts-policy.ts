/**
 * The two texts of MTA-STS: the DNS record that announces a policy, and the policy.
 *
 * Called by `mta-sts-fetch.ts` and `mta-sts.ts`. Pure. Standards: RFC 8461 §3.1 (record), §3.2 (policy), §4.1 (matching
 * hosts). Fails: never throws; a record that says nothing reads as undefined, a policy that is not one as the fault.
 */

export interface StsPolicy {
  readonly mode: 'enforce' | 'testing' | 'none'
  /** Host names and `*.domain`, lower case. */
  readonly mx: readonly string[]
  readonly maxAgeSeconds: number
}

export type PolicyReading = { readonly policy: StsPolicy } | { readonly fault: string }

const EXTENSION_NAME = '[A-Za-z0-9][A-Za-z0-9_.-]{0,31}'
/** RFC 8461 §3.1 `sts-ext-value`: printable, without `;` and `=`. */
const RECORD_FIELD = new RegExp(`^${EXTENSION_NAME}=[\\x21-\\x3a\\x3c\\x3e-\\x7e]+$`)
const RECORD_ID = /^id=([A-Za-z0-9]{1,32})$/

/**
 * @param records TXT records of `_mta-sts.<domain>`
 * @returns the policy's id; undefined where the domain announces no policy, or not in one well-formed record
 */
export function readStsId(records: readonly string[]): string | undefined {
  // RFC 8461 §3.1: other records are passed over; two that begin like this are as good as none.
  const [record, ...others] = records.filter(text => /^v=STSv1[ \t]*;/.test(text))
  if (record === undefined || others.length > 0) return undefined
  const fields = record.split(';').map(field => field.trim())
  if (fields.at(-1) === '') fields.pop()
  if (!fields.every(field => RECORD_FIELD.test(field))) return undefined
  // Of a field that is repeated the first counts.
  const id = fields.find(field => field.startsWith('id='))
  return id === undefined ? undefined : RECORD_ID.exec(id)?.[1]
}

/** Patterns of one policy that are kept; no real domain has nearly as many exchangers. */
const MOST_PATTERNS = 200
/** RFC 8461 §3.2: about a year. */
const LONGEST_MAX_AGE_SECONDS = 31_557_600

const FIELD_NAME = new RegExp(`^${EXTENSION_NAME}$`)
/** RFC 8461 §3.2 `sts-policy-vchar` with spaces between; whoever decodes has refused what is not UTF-8. */
const FIELD_VALUE = /^[^\p{Cc}]+$/u
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const MX_PATTERN = new RegExp(`^(?:\\*\\.)?${LABEL}(?:\\.${LABEL})*$`)

/** @param text the body of `/.well-known/mta-sts.txt` */
export function readStsPolicy(text: string): PolicyReading {
  const fields = new Map<string, string>()
  const mx: string[] = []
  const lines = text.split(/\r?\n/)
  // Empty lines at the end are no reason to send in clear.
  while (lines.at(-1) === '') lines.pop()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const [name, value] = [line.slice(0, Math.max(0, colon)), line.slice(colon + 1).trim()]
    if (!FIELD_NAME.test(name) || !FIELD_VALUE.test(value)) return { fault: 'a line is not "name: value"' }
    if (name === 'mx') mx.push(value.toLowerCase())
    // RFC 8461 §3.2: of a field that is repeated the first counts; unknown ones are passed over.
    else if (!fields.has(name)) fields.set(name, value)
  }
  return checkPolicy(fields, mx)
}

function checkPolicy(fields: ReadonlyMap<string, string>, mx: readonly string[]): PolicyReading {
  if (fields.get('version') !== 'STSv1') return { fault: 'its version is not STSv1' }
  const mode = MODES.find(known => known === fields.get('mode'))
  if (mode === undefined) return { fault: 'its mode is none of enforce, testing, none' }
  const digits = fields.get('max_age') ?? ''
  const maxAgeSeconds = Number(digits)
  if (!/^\d{1,10}$/.test(digits) || maxAgeSeconds > LONGEST_MAX_AGE_SECONDS)
    return { fault: `its max_age is not a number from 0 to ${LONGEST_MAX_AGE_SECONDS}` }
  if (!mx.every(isMxPattern)) return { fault: 'an mx is neither a host name nor *.domain' }
  if (mx.length > MOST_PATTERNS) return { fault: `it has more than ${MOST_PATTERNS} mx` }
  // A policy that is being withdrawn has no need of hosts (RFC 8461 §8.3).
  if (mx.length === 0 && mode !== 'none') return { fault: 'it has no mx' }
  return { policy: { mode, mx, maxAgeSeconds } }
}

const MODES = ['enforce', 'testing', 'none'] as const

function isMxPattern(pattern: string): boolean {
  return pattern.length <= 253 && MX_PATTERN.test(pattern)
}

/**
 * Whether a policy lists this MX host (RFC 8461 §4.1): the star stands for the left-most label, one and whole.
 *
 * @param host lower case
 */
export function listsHost({ mx }: StsPolicy, host: string): boolean {
  const dot = host.indexOf('.')
  const wildcard = dot > 0 ? `*${host.slice(dot)}` : undefined
  return mx.some(pattern => pattern === host || pattern === wildcard)
}
