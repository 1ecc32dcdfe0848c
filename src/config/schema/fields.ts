/**
 * The kinds of field that the configuration schema is made of.
 *
 * Called by the sections of the schema only to build, by the loader and the generators to read the notes that each field carries.
 * A field checks the operator's notation and decodes it; what it expects is one phrase, used in faults and in the
 * reference alike. Pure.
 */
import Type, { type TSchema } from 'typebox'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../core/units.js'

/** What a field says of itself, in the generated files and in faults. */
export interface FieldNotes {
  /** One or two sentences for the operator. */
  readonly description: string
  /** In the file's notation. Absent: the operator has to give it, or (in a table of a list) it is the table's subject. */
  readonly default?: unknown
  /** A useful value, for the generated files, where the default says too little. */
  readonly example?: unknown
  /** False while nothing in this version reads it. */
  readonly effective?: false
  /**
   * `always`: never shown, not in faults and not by `config show`. `when_wrong`: a value that is not in the field's
   * notation may hold a password, so faults do not repeat it.
   */
  readonly secret?: 'always' | 'when_wrong'
}

/** Decoded numbers that have a unit, which their keys are named after (`named.ts`). */
export type Milliseconds = number & { readonly unit: 'ms' }
export type Octets = number & { readonly unit: 'octets' }

/** What the loader and the generators see of any node of the schema. */
export interface SchemaNode extends FieldNotes {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'
  /** Completes "is not ...", e.g. `a duration from 1s to 1h`. */
  readonly expected?: string
  /** Of the decoded number. */
  readonly unit?: 'ms' | 'octets'
  /** What an empty value stands for, by the name of this machine. */
  readonly fromHostname?: (hostname: string) => string
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly items?: SchemaNode
}

/** The schema as plain nodes; every builder below makes exactly this shape. */
export function nodeOf(schema: TSchema): SchemaNode {
  return schema as SchemaNode
}

export interface Bounds {
  /** In the file's notation, both inclusive. */
  readonly min: string
  readonly max: string
}

/** Text in a notation of its own, decoded by `parse`. */
export function parsed<T>(
  parse: (text: string) => T | undefined,
  expected: string,
  notes: FieldNotes & Pick<SchemaNode, 'unit'>,
) {
  const checked = Type.Refine(Type.String({ ...notes, expected }), text => parse(text) !== undefined)
  // Decoding follows a check, so parse has an answer.
  return Type.Decode(checked, text => parse(text) as T)
}

/** Like `parsed`, where empty text means "not set" and decodes to undefined. */
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

/** Like `parsed`, where empty text means what follows from the name of this machine; the loader puts that in. */
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

/** How long to keep something, decoded to ms; 0 is for ever. */
export function keeping({ min, ...notes }: FieldNotes & Pick<Bounds, 'min'>) {
  const [least = 0, most = 0] = [parseDuration(min), parseDuration(LONGEST_KEPT)]
  const within = (text: string) => {
    const amount = parseDuration(text)
    const isKnown = amount === 0 || (amount !== undefined && amount >= least && amount <= most)
    return isKnown ? (amount as Milliseconds) : undefined
  }
  return parsed(within, `"0" or a duration from ${min} to ${LONGEST_KEPT}`, { ...notes, unit: 'ms' })
}

const LONGEST_KEPT = '36500d'

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

/** Any text without control characters, which would end up in logs and in SMTP dialogues. */
export function text(notes: FieldNotes) {
  return Type.Refine(Type.String({ ...notes, expected: 'plain text' }), value => !/\p{Cc}/u.test(value))
}

/** One of a few words. */
export function choice<const Word extends string>(words: readonly Word[], notes: FieldNotes) {
  return parsed(value => words.find(word => word === value), `one of ${words.join(', ')}`, notes)
}

/** A list; the notes of the item only lend it their expectation. */
export function list<Item extends TSchema>(item: Item, notes: FieldNotes) {
  return Type.Array(item, { ...notes })
}

/** A section, or the shape of one table in a list of tables. Keys it does not name are faults. */
export function table<Properties extends Record<string, TSchema>>(
  properties: Properties,
  notes: FieldNotes = { description: '' },
) {
  return Type.Object(properties, { additionalProperties: false, ...notes })
}
