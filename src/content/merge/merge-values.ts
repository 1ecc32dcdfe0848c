/**
 * What the tags of a merge template are filled from, and which source goes before which.
 *
 * System tags go before template_data, and that before what is known of the contact. Only own properties are ever read, so that
 * no name leads to anything of the program (`__proto__`, `constructor`). Pure. Fails: never throws.
 */
import type { Lookup } from './merge-tree.js'

export interface MergeContact {
  readonly email: string
  readonly firstName: string | null
  readonly lastName: string | null
  readonly attributes: Readonly<Record<string, unknown>>
}

export interface MergeValues {
  /** `unsubscribe_url`, `company_name`, `current_year` and their kin. */
  readonly system: Readonly<Record<string, string>>
  /** `template_data`: any JSON. */
  readonly data?: Readonly<Record<string, unknown>>
  readonly contact?: MergeContact
  /** What stands for links and pixel; where it is absent links stay as written and there is no pixel. */
  readonly tracking?: TrackedUrls
}

export interface TrackedUrls {
  readonly pixelUrl: string
  /** What stands before the part of each link. */
  readonly clickUrl: string
  /** For a URL that leads everybody to the same place. @returns its part, base64url; undefined where it stays as written */
  shared(url: string): string | undefined
  /** @param written what stands in the attribute for this recipient @returns its part; undefined where it stays so */
  own(written: string): string | undefined
}

/** One turn of a loop. */
export interface LoopTurn {
  readonly item: unknown
  readonly index: number
  readonly count: number
}

export function findValue(lookup: Lookup, values: MergeValues, turn: LoopTurn | undefined): unknown {
  switch (lookup.of) {
    case 'root':
      return findByName(lookup.name, lookup.path, values)
    case 'this':
      return follow(turn?.item, lookup.path)
    case 'loop':
      return turn && loopVariable(lookup.variable, turn)
  }
}

function loopVariable(variable: 'index' | 'first' | 'last', { index, count }: LoopTurn): number | boolean {
  if (variable === 'index') return index
  return variable === 'first' ? index === 0 : index === count - 1
}

/** Only of template_data: what the caller of the API gave is the only thing that may stand in HTML unescaped. */
export function findRawValue(lookup: Lookup, values: MergeValues, turn: LoopTurn | undefined): unknown {
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

/** What a reader sees of a value; a structure has no text, and so counts as missing. */
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

/** False for what is missing, false, 0, empty text, an empty list. The texts "0" and "false" are texts. */
export function isTrue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value)
}
