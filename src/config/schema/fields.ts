/**
 * Field types of the configuration schema.
 *
 * A field validates the operator's notation and decodes it. Its `expected` phrase is used both in faults and in the reference. Pure.
 */
import Type, { type TSchema } from 'typebox'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../core/units.js'

/** Documentation of a field, for the generated files and for faults. */
export interface FieldNotes {
  /** One or two sentences for the operator. */
  readonly description: string
  /** In file notation. Absent: required, or (in a list of tables) the key that identifies the table. */
  readonly default?: unknown
  /** A useful value for the generated files if the default does not explain enough. */
  readonly example?: unknown
  /** False if this version does not use it. */
  readonly effective?: false
  /**
   * `always`: never shown in faults or by `config show`. `when_wrong`: an invalid value may contain a password, so faults do not quote it.
   */
  readonly secret?: 'always' | 'when_wrong'
}

/** Decoded numbers with a unit, which is appended to their names (`config.ts`). */
export type Milliseconds = number & { readonly unit: 'ms' }
export type Octets = number & { readonly unit: 'octets' }

/** Any schema node, as the loader and the generators see it. */
export interface SchemaNode extends FieldNotes {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  /** Completes "is not ...", e.g. `a duration from 1s to 1h`. */
  readonly expected?: string
  /** Unit of the decoded number. */
  readonly unit?: 'ms' | 'octets'
  /** Derives the value from the hostname if empty. */
  readonly fromHostname?: (hostname: string) => string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
}

/** Views the schema as plain nodes; every builder below returns this shape. */
export function nodeOf(schema: TSchema): SchemaNode {
  return schema as SchemaNode
}

export interface Bounds {
  /** In file notation, both inclusive. */
  readonly min: string
  readonly max: string
}

/** Text that `parse` validates and decodes. */
export function parsed<T>(
  parse: (text: string) => T | undefined,
  expected: string,
  notes: FieldNotes & Pick<SchemaNode, 'unit'>,
) {
  const checked = Type.Refine(Type.String({ ...notes, expected }), text => parse(text) !== undefined)
  // Decoding runs only after validation, so parse succeeds.
  return Type.Decode(checked, text => parse(text) as T)
}

/** Like `parsed`, but empty text means "not set" and decodes to undefined. */
export function optionalParsed<T>(
  parse: (text: string) => T | undefined,
  expected: string,
  notes: FieldNotes,
) {
  const checked = Type.Refine(
    Type.String({ ...notes, expected: `${expected}, or "" for none` }),
    text => text === '' || parse(text) !== undefined,
  )
  return Type.Decode(checked, text => (text === '' ? undefined : parse(text)))
}

/** Like `parsed`, but the loader replaces empty text with a value derived from the hostname. */
export function parsedOrDerived<T>(
  parse: (text: string) => T | undefined,
  expected: string,
  { fromHostname, ...notes }: FieldNotes & Required<Pick<SchemaNode, 'fromHostname'>>,
) {
  const checked = Type.Refine(
    Type.String({ ...notes, fromHostname, expected: `${expected}, or "" for none` }),
    text => text === '' || parse(text) !== undefined,
  )
  return Type.Decode(checked, text => parse(text) as T)
}

/** A duration, decoded to ms. */
export function duration(notes: FieldNotes & Bounds) {
  return measured<Milliseconds>(parseDuration, formatDuration, 'a duration', { ...notes, unit: 'ms' })
}

/** A retention time, decoded to ms; 0 is forever. */
export function keeping({ min, ...notes }: FieldNotes & Pick<Bounds, 'min'>) {
  const [least = 0, most = 0] = [parseDuration(min), parseDuration(MAX_RETENTION)]
  const within = (text: string) => {
    const amount = parseDuration(text)
    const isKnown = amount === 0 || (amount !== undefined && amount >= least && amount <= most)
    return isKnown ? (amount as Milliseconds) : undefined
  }
  return parsed(within, `"0" or a duration from ${min} to ${MAX_RETENTION}`, { ...notes, unit: 'ms' })
}

const MAX_RETENTION = '36500d'

/** A size, decoded to bytes. */
export function size(notes: FieldNotes & Bounds) {
  return measured<Octets>(parseSize, formatSize, 'a size', { ...notes, unit: 'octets' })
}

function measured<Amount extends number>(
  parse: (text: string) => number | undefined,
  format: (amount: number) => string,
  noun: string,
  { min, max, ...notes }: FieldNotes & Bounds & Required<Pick<SchemaNode, 'unit'>>,
) {
  const [least = 0, most = 0] = [parse(min), parse(max)]
  const within = (text: string) => {
    const amount = parse(text)
    return amount !== undefined && amount >= least && amount <= most ? (amount as Amount) : undefined
  }
  return parsed(within, `${noun} from ${format(least)} to ${format(most)}`, notes)
}

export function integer({ min, max, ...notes }: FieldNotes & { readonly min: number; readonly max: number }) {
  const expected = `a whole number from ${min} to ${max}`
  return Type.Integer({ ...notes, minimum: min, maximum: max, expected })
}

export function number({ min, max, ...notes }: FieldNotes & { readonly min: number; readonly max: number }) {
  return Type.Number({ ...notes, minimum: min, maximum: max, expected: `a number from ${min} to ${max}` })
}

export function flag(notes: FieldNotes) {
  return Type.Boolean({ ...notes, expected: 'true or false' })
}

/** Text without control characters, which could corrupt logs and SMTP sessions. */
export function text(notes: FieldNotes) {
  return Type.Refine(Type.String({ ...notes, expected: 'plain text' }), value => !/\p{Cc}/u.test(value))
}

/** One of the given words. */
export function choice<const Word extends string>(words: readonly Word[], notes: FieldNotes) {
  return parsed(value => words.find(word => word === value), `one of ${words.join(', ')}`, notes)
}

/** A list; of the item's notes only `expected` is used. */
export function list<Item extends TSchema>(item: Item, notes: FieldNotes) {
  return Type.Array(item, { ...notes })
}

/** A section, or a table in a list of tables. Unknown keys are faults. */
export function table<Properties extends Record<string, TSchema>>(
  properties: Properties,
  notes: FieldNotes = { description: '' },
) {
  return Type.Object(properties, { additionalProperties: false, ...notes })
}
