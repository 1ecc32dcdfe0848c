/**
 * Reads JSON piece by piece as it arrives, builds its value on the way, and stops where it goes past a bound: nothing is held
 * twice, and nothing is built that is then refused.
 *
 * Called by `body.ts`. What it takes and builds is what `JSON.parse` takes and builds, a field given twice counting as given
 * last, but for three things that no value can carry on faithfully: a number beyond a double (1e400), half a surrogate pair
 * (\ud800) and text that is not UTF-8 are refused.
 * Standard: RFC 8259. A byte order mark at the beginning is passed over (§8.1).
 * Fails: AppError validation_error, path `body`, with the octet at which it happened where the JSON is broken.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { AppError } from '../../core/errors.js'

export interface JsonBounds {
  /** Fields, entries, lists and objects together. */
  readonly values: number
  /** The same within one entry of a list that a field of the outermost object holds, e.g. one message of a batch. */
  readonly entryValues?: number
}

/** Lists and objects within each other. */
export const DEEPEST = 100
/** Characters of a field's name. */
const LONGEST_NAME = 1_000
/** Characters; a double needs 25, and some write zeros for ever. */
const LONGEST_NUMBER = 65_536
/** Octets that are looked at one by one before the search for a quote pays. */
const SHORT = 48
/** Octets of the longest escape, `\uXXXX`. */
const ESCAPE_OCTETS = 6

const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const LITERALS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])

const NOTHING = Buffer.alloc(0)
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [BEGIN_LIST, END_LIST, BEGIN_OBJECT, END_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const [SPACE, TAB, LF, CR] = [0x20, 0x09, 0x0a, 0x0d]

/** What may come next; the members that end in `OrEnd` stand after `[` and `{`. */
type Expected = 'value' | 'valueOrEnd' | 'name' | 'nameOrEnd' | 'colon' | 'commaOrEnd' | 'nothing'

/** A list or object that is not closed yet. */
interface Open {
  readonly list: unknown[] | undefined
  readonly object: Record<string, unknown>
  /** Of the field whose value comes next. */
  name: string
}

export class JsonReader {
  private readonly bounds: JsonBounds
  private readonly open: Open[] = []
  private innermost: Open | undefined
  private expected: Expected = 'value'
  private whole: unknown
  private values = 0
  /** Count at which the present entry of an outer list began. */
  private valuesBefore = 0
  /** Of a string, number or literal that goes on in what comes next. */
  private rest: Buffer = NOTHING
  /** Of a string that goes on: what was read of it. */
  private text: string[] | undefined
  /** Octets before the present piece. */
  private passed = 0
  private isBegun = false

  constructor(bounds: JsonBounds) {
    this.bounds = bounds
  }

  /** @throws AppError validation_error */
  write(piece: Buffer): void {
    let input = this.rest.length === 0 ? piece : Buffer.concat([this.rest, piece])
    if (!this.isBegun) {
      if (input.length < BYTE_ORDER_MARK.length) {
        this.rest = input
        return
      }
      this.isBegun = true
      if (input.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)) {
        input = input.subarray(BYTE_ORDER_MARK.length)
        this.passed += BYTE_ORDER_MARK.length
      }
    }
    this.advance(input, false)
  }

  /** @returns the value @throws AppError validation_error */
  end(): unknown {
    this.advance(this.rest, true)
    if (this.text) throw this.broken(this.rest.length)
    if (this.expected !== 'nothing') throw this.broken(0)
    return this.whole
  }

  private advance(input: Buffer, isLast: boolean): void {
    const at = this.read(input, isLast)
    this.passed += at
    // A copy, since a few octets must not keep the piece they came in.
    this.rest = at === input.length ? NOTHING : Buffer.from(input.subarray(at))
  }

  /** @returns up to where it was read */
  private read(input: Buffer, isLast: boolean): number {
    let at = this.text ? this.readString(input, 0) : 0
    while (at < input.length && !this.text) {
      const octet = input[at] ?? 0
      switch (octet) {
        case SPACE:
        case LF:
        case CR:
        case TAB:
          at += 1
          break
        case QUOTE:
          if (!this.mayTakeValue() && this.expected !== 'name' && this.expected !== 'nameOrEnd')
            throw this.broken(at)
          this.text = []
          at = this.readString(input, at + 1)
          break
        case COMMA:
          if (this.expected !== 'commaOrEnd') throw this.broken(at)
          this.expected = this.innermost?.list ? 'value' : 'name'
          at += 1
          break
        case COLON:
          if (this.expected !== 'colon') throw this.broken(at)
          this.expected = 'value'
          at += 1
          break
        case BEGIN_LIST:
        case BEGIN_OBJECT:
          if (!this.mayTakeValue()) throw this.broken(at)
          this.begin(octet === BEGIN_LIST)
          at += 1
          break
        case END_LIST:
        case END_OBJECT:
          if (!this.mayEnd(octet === END_LIST)) throw this.broken(at)
          this.open.pop()
          this.innermost = this.open.at(-1)
          this.expected = this.innermost ? 'commaOrEnd' : 'nothing'
          at += 1
          break
        default: {
          const end = wordEnd(input, at)
          if (!this.mayTakeValue() || end - at > LONGEST_NUMBER) throw this.broken(at)
          if (end === input.length && !isLast) return at
          this.take(this.word(input, at, end))
          at = end
        }
      }
    }
    return at
  }

  private mayTakeValue(): boolean {
    return this.expected === 'value' || this.expected === 'valueOrEnd'
  }

  private mayEnd(isList: boolean): boolean {
    if (!this.innermost || isList !== (this.innermost.list !== undefined)) return false
    return this.expected === 'commaOrEnd' || this.expected === (isList ? 'valueOrEnd' : 'nameOrEnd')
  }

  /** Reads on in a string, up to behind its quote or as far as it can be told apart. @returns up to where it was read */
  private readString(input: Buffer, from: number): number {
    const short = shortStringEnd(input, from)
    if (short !== -1) {
      this.endString(input.toString('latin1', from, short))
      return short + 1
    }
    const end = stringEnd(input, from)
    if (end !== -1) {
      this.endString(this.decode(input, from, end))
      return end + 1
    }
    const cut = Math.max(from, Math.min(wholeCharacters(input), wholeEscapes(input, from)))
    this.text?.push(this.decode(input, from, cut))
    return cut
  }

  private decode(input: Buffer, from: number, to: number): string {
    const octets = input.subarray(from, to)
    const isPlain = isAscii(octets)
    if (!isPlain && !isUtf8(octets)) throw refused('is not valid UTF-8')
    try {
      // It knows the escapes, and that controls have to be written as such.
      return JSON.parse(`"${octets.toString(isPlain ? 'latin1' : 'utf8')}"`) as string
    } catch {
      throw this.broken(from)
    }
  }

  private endString(last: string): void {
    const text = this.text?.length ? this.text.join('') + last : last
    this.text = undefined
    if (this.mayTakeValue()) {
      refuseHalfPairs(text)
      this.take(text)
    } else {
      refuseName(text)
      if (this.innermost) this.innermost.name = text
      this.expected = 'colon'
    }
  }

  private word(input: Buffer, from: number, to: number): unknown {
    const word = input.toString('latin1', from, to)
    if (LITERALS.has(word)) return LITERALS.get(word)
    if (!NUMBER.test(word)) throw this.broken(from)
    const number = Number(word)
    refuseOutOfRange(number)
    return number
  }

  private begin(isList: boolean): void {
    if (this.open.length === DEEPEST) throw tooDeep()
    const list = isList ? [] : undefined
    const object = {}
    this.take(list ?? object)
    this.innermost = { list, object, name: '' }
    this.open.push(this.innermost)
    this.expected = isList ? 'valueOrEnd' : 'nameOrEnd'
  }

  /** Puts the value where it belongs. */
  private take(value: unknown): void {
    const { innermost } = this
    this.count()
    if (!innermost) {
      this.whole = value
      this.expected = 'nothing'
      return
    }
    if (innermost.list) innermost.list.push(value)
    else setField(innermost.object, innermost.name, value)
    this.expected = 'commaOrEnd'
  }

  private count(): void {
    const { values, entryValues } = this.bounds
    if (this.open.length <= 2) this.valuesBefore = this.values
    this.values += 1
    if (this.values > values)
      throw refused(`holds more than ${values} values, counting every field and entry`)
    if (entryValues !== undefined && this.values - this.valuesBefore > entryValues)
      throw refused(`holds more than ${entryValues} values in one entry, counting every field and entry`)
  }

  private broken(at: number): AppError {
    return refused(`is not valid JSON (at octet ${this.passed + at})`)
  }
}

/**
 * What a reader refuses besides broken JSON, looked for in a value that somebody else has built.
 *
 * @param mayHoldHalfPairs whether its texts are looked through for them, which takes longer than everything else here
 * @throws AppError validation_error
 */
export function refuseUnfit(value: unknown, mayHoldHalfPairs: boolean, depth = 0): void {
  if (typeof value === 'string') {
    if (mayHoldHalfPairs) refuseHalfPairs(value)
  } else if (typeof value === 'number') refuseOutOfRange(value)
  else if (typeof value === 'object' && value !== null) {
    if (depth === DEEPEST) throw tooDeep()
    if (Array.isArray(value)) for (const entry of value) refuseUnfit(entry, mayHoldHalfPairs, depth + 1)
    else
      for (const name in value) {
        refuseName(name)
        refuseUnfit((value as Record<string, unknown>)[name], mayHoldHalfPairs, depth + 1)
      }
  }
}

/** Escapes can write half a pair. */
function refuseHalfPairs(text: string): void {
  if (!isWellFormed(text)) throw refused('holds half a surrogate pair (like \\ud800), which is no character')
}

function refuseName(name: string): void {
  if (name.length > LONGEST_NAME)
    throw refused(`has a field whose name is longer than ${LONGEST_NAME} characters`)
  refuseHalfPairs(name)
}

function refuseOutOfRange(number: number): void {
  if (!Number.isFinite(number)) throw refused('holds a number that is out of range, like 1e400')
}

function tooDeep(): AppError {
  return refused(`is nested deeper than ${DEEPEST} levels`)
}

function refused(problem: string): AppError {
  return new AppError('validation_error', `body ${problem}`, { path: 'body' })
}

/** A field called `__proto__` is a field like any other. */
function setField(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
  else object[name] = value
}

/** The end of a number or literal. */
function wordEnd(input: Buffer, from: number): number {
  for (let at = from; at < input.length; at += 1)
    switch (input[at] ?? 0) {
      case COMMA:
      case COLON:
      case QUOTE:
      case BEGIN_LIST:
      case END_LIST:
      case BEGIN_OBJECT:
      case END_OBJECT:
      case SPACE:
      case TAB:
      case LF:
      case CR:
        return at
    }
  return input.length
}

/** Where the last character begins if it may go on in what comes next, else the end (RFC 3629 §3). */
function wholeCharacters(input: Buffer): number {
  const end = input.length
  for (let at = end - 1; at >= Math.max(0, end - 4); at -= 1) {
    const octet = input[at] ?? 0
    if (octet < 0x80) return end
    if (octet >= 0xc0) return at
  }
  return end
}

/** Where an escape begins that may go on in what comes next, else the end. @param from where no escape is under way */
function wholeEscapes(input: Buffer, from: number): number {
  const last = input.lastIndexOf(BACKSLASH)
  const mayGoOn = last >= from && input.length - last < ESCAPE_OCTETS
  return mayGoOn && backslashesBefore(input, from, last + 1) % 2 === 1 ? last : input.length
}

function backslashesBefore(input: Buffer, from: number, to: number): number {
  let at = to
  while (at > from && input[at - 1] === BACKSLASH) at -= 1
  return to - at
}

/** The quote that ends a string of a few plain characters, as nearly all names are; -1 where it is another. */
function shortStringEnd(input: Buffer, from: number): number {
  const end = Math.min(input.length, from + SHORT)
  for (let at = from; at < end; at += 1) {
    const octet = input[at] ?? 0
    if (octet === QUOTE) return at
    if (octet === BACKSLASH || octet < SPACE || octet >= 0x80) return -1
  }
  return -1
}

/** The quote that ends a string; -1 where it has not come yet. */
function stringEnd(input: Buffer, from: number): number {
  let end = input.indexOf(QUOTE, from)
  while (end !== -1 && backslashesBefore(input, from, end) % 2 === 1) end = input.indexOf(QUOTE, end + 1)
  return end
}

function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed()
}
