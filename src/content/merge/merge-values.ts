/**
 * Looks up the values of merge tags.
 *
 * Precedence: system tags, template_data, contact. Only own properties are read, so that names such as `__proto__` and `constructor` find
 * nothing. Pure. Never throws.
 */
import { zoneTime } from '../../world/time/zone-time.js'
import type { Lookup } from './merge-tree.js'

export interface MergeContact {
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly attributes: Readonly<Record<string, unknown>>
}

export interface MergeValues {
  /** `unsubscribe_url`, `company_name`, `current_year` and so on. */
  readonly system: Readonly<Record<string, string>>
  readonly data?: Readonly<Record<string, unknown>>
  readonly contact?: MergeContact
  /** If absent, links are rendered as written and there is no pixel. */
  readonly tracking?: TrackedUrls
  /** Called for each tag that is rendered as nothing: it has neither a value nor a fallback. */
  readonly onEmpty?: (lookup: Lookup) => void
}

export interface TrackedUrls {
  readonly pixelUrl: string
  /** Prefix of every tracked link. */
  readonly clickUrl: string
  /** For a URL that is the same for all recipients. @returns its link part, base64url; undefined to keep it as written */
  shared(url: string): string | undefined
  /** @param written this recipient's attribute value @returns its link part; undefined to keep it as written */
  own(written: string): string | undefined
}

export interface LoopIteration {
  readonly item: unknown
  readonly index: number
  readonly count: number
}

export function findValue(lookup: Lookup, values: MergeValues, turn: LoopIteration | undefined): unknown {
  switch (lookup.of) {
    case 'root':
      return findByName(lookup.name, lookup.path, values)
    case 'this':
      return follow(turn?.item, lookup.path)
    case 'loop':
      return turn && loopVariable(lookup.variable, turn)
  }
}

function loopVariable(
  variable: 'index' | 'first' | 'last',
  { index, count }: LoopIteration,
): number | boolean {
  if (variable === 'index') return index
  return variable === 'first' ? index === 0 : index === count - 1
}

/** Reads template_data only: just the API caller's own data may appear unescaped in HTML. */
export function findRawValue(lookup: Lookup, values: MergeValues, turn: LoopIteration | undefined): unknown {
  if (lookup.of !== 'root') return findValue(lookup, values, turn)
  return Object.hasOwn(values.system, lookup.name) ? undefined : findInData(lookup.name, lookup.path, values)
}

function findByName(name: string, path: readonly string[], values: MergeValues): unknown {
  if (Object.hasOwn(values.system, name)) return values.system[name]
  const given = findInData(name, path, values)
  return given === undefined ? findOfContact(name, path, values.contact) : given
}

function findInData(name: string, path: readonly string[], { data }: MergeValues): unknown {
  if (data === undefined) return undefined
  return Object.hasOwn(data, name) ? data[name] : path.length > 1 ? follow(data, path) : undefined
}

function findOfContact(name: string, path: readonly string[], contact: MergeContact | undefined): unknown {
  if (contact === undefined) return undefined
  switch (name) {
    case 'email':
      return contact.email
    case 'firstName':
    case 'first_name':
      return contact.firstName
    case 'lastName':
    case 'last_name':
      return contact.lastName
    case 'company':
      return ownProperty(contact.attributes, 'company')
  }
  if (path[0] !== 'attributes' || path.length < 2) return undefined
  const whole = ownProperty(contact.attributes, path.slice(1).join('.'))
  return whole === undefined ? follow(contact.attributes, path.slice(1)) : whole
}

function follow(from: unknown, path: readonly string[]): unknown {
  let value = from
  for (const step of path) value = ownProperty(value, step)
  return value
}

function ownProperty(of: unknown, name: string): unknown {
  if (typeof of !== 'object' || of === null || !Object.hasOwn(of, name)) return undefined
  return (of as Readonly<Record<string, unknown>>)[name]
}

/** A value as text; objects and lists count as missing. */
export function textOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
    case 'boolean':
      return String(value)
    default:
      return ''
  }
}

/** False for missing, false, 0, empty text and empty lists. The texts "0" and "false" are true. */
export function isTrue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value)
}

interface DateTags {
  readonly current_year: string
  readonly current_month: string
  readonly current_date: string
}

/** Days start on a quarter of an hour in every time zone. */
const QUARTER_MS = 900_000

/** Consecutive messages usually share date and zone. */
let last: { readonly key: string; readonly tags: DateTags } | undefined

/** System tags for the mail's date. @param now ms since epoch UTC @param timezone IANA name; UTC if unknown */
export function dateTags(now: number, timezone: string): DateTags {
  const key = `${timezone} ${Math.floor(now / QUARTER_MS)}`
  if (last?.key !== key) last = { key, tags: tagsOf(now, timezone) }
  return last.tags
}

const shown = zoneTime({ year: 'numeric', month: 'long', day: 'numeric' })

function tagsOf(now: number, timezone: string): DateTags {
  const part = shown(now, timezone)
  return {
    current_year: part('year'),
    current_month: part('month'),
    current_date: `${part('month')} ${part('day')}, ${part('year')}`,
  }
}
