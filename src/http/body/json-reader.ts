/**
 * Incremental JSON parser with limits. Builds the value while the body arrives and stops as soon as a limit is exceeded, so that input
 * is neither buffered twice nor parsed in vain.
 *
 * Called by `body.ts`. Accepts and builds the same as `JSON.parse` (the last of duplicate fields wins), except that it refuses what no
 * value can represent faithfully: numbers beyond a double (1e400), unpaired surrogates (\ud800) and invalid UTF-8.
 * Standard: RFC 8259. A leading byte order mark is ignored (§8.1).
 * Fails: AppError validation_error, path `body`, with the byte offset of a syntax error.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { AppError } from '../../core/errors.js'

export interface JsonBounds {
  /** Fields, entries, lists and objects together. */
  readonly values: number
  /** Limit within one entry of a list in a field of the outermost object, e.g. one message of a batch. */
  readonly entryValues?: number
}

/** Maximum nesting of lists and objects. */
export const DEEPEST = 100
/** Characters of a field name. */
const MAX_NAME = 1_000
/** Characters; a double needs 25, but some writers add many zeros. */
const MAX_NUMBER = 65_536
/** Octets scanned one by one before searching for the quote is faster. */
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

/** What may come next; the `OrEnd` members apply right after `[` and `{`. */
type Expected = 'value' | 'valueOrEnd' | 'name' | 'nameOrEnd' | 'colon' | 'commaOrEnd' | 'nothing'

/** A list or object still open. */
interface Open {
  readonly list: unknown[] | undefined
  readonly object: Record<string, unknown>
  /** Name of the field whose value comes next. */
  name: string
}

export class JsonReader {
  private readonly bounds: JsonBounds
  private readonly open: Open[] = []
  private innermost: Open | undefined
  private expected: Expected = 'value'
  private whole: unknown
  private values = 0
  /** Value count at the start of the current entry of an outer list. */
  private valuesBefore = 0
  /** Unparsed rest of a string, number or literal that continues in the next piece. */
  private rest: Buffer = NOTHING
  /** Decoded parts of a string that continues in the next piece. */
  private text: string[] | undefined
  /** Octets before the current piece. */
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
    // Copied, so that a few octets do not keep the whole piece in memory.
    this.rest = at === input.length ? NOTHING : Buffer.from(input.subarray(at))
  }

  /** @returns offset up to which input was consumed */
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
          if (!this.mayTakeValue() || end - at > MAX_NUMBER) throw this.broken(at)
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

  /** Reads to the end of the string, or as far as the input allows. @returns offset up to which input was consumed */
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
      // JSON.parse handles escapes, and rejects raw control characters.
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

  /** Adds a complete value to its parent. */
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
    if (this.values > values) throw refused(`has more than ${values} values, counting every field and entry`)
    if (entryValues !== undefined && this.values - this.valuesBefore > entryValues)
      throw refused(`has more than ${entryValues} values in one entry, counting every field and entry`)
  }

  private broken(at: number): AppError {
    return refused(`is not valid JSON (at byte ${this.passed + at})`)
  }
}

/**
 * Applies the reader's limits and refusals to a value that `JSON.parse` built.
 *
 * @param mayHoldHalfPairs whether to check strings for unpaired surrogates, the slowest of the checks
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

/** Only escapes can produce them. */
function refuseHalfPairs(text: string): void {
  if (!isWellFormed(text)) throw refused('contains an unpaired surrogate, such as \\ud800')
}

function refuseName(name: string): void {
  if (name.length > MAX_NAME) throw refused(`has a field name longer than ${MAX_NAME} characters`)
  refuseHalfPairs(name)
}

function refuseOutOfRange(number: number): void {
  if (!Number.isFinite(number)) throw refused('contains a number that is out of range, such as 1e400')
}

function tooDeep(): AppError {
  return refused(`is nested deeper than ${DEEPEST} levels`)
}

function refused(problem: string): AppError {
  return new AppError('validation_error', `body ${problem}`, { path: 'body' })
}

/** Plain assignment of `__proto__` would set the prototype. */
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

/** Start of a character that may continue in the next piece, else the end (RFC 3629 §3). */
function wholeCharacters(input: Buffer): number {
  const end = input.length
  for (let at = end - 1; at >= Math.max(0, end - 4); at -= 1) {
    const octet = input[at] ?? 0
    if (octet < 0x80) return end
    if (octet >= 0xc0) return at
  }
  return end
}

/** Start of an escape that may continue in the next piece, else the end. @param from a position outside any escape */
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

/** Closing quote of a short string of plain characters, as nearly all names are; -1 for any other. */
function shortStringEnd(input: Buffer, from: number): number {
  const end = Math.min(input.length, from + SHORT)
  for (let at = from; at < end; at += 1) {
    const octet = input[at] ?? 0
    if (octet === QUOTE) return at
    if (octet === BACKSLASH || octet < SPACE || octet >= 0x80) return -1
  }
  return -1
}

/** Closing quote of a string; -1 if it has not arrived. */
function stringEnd(input: Buffer, from: number): number {
  let end = input.indexOf(QUOTE, from)
  while (end !== -1 && backslashesBefore(input, from, end) % 2 === 1) end = input.indexOf(QUOTE, end + 1)
  return end
}

function isWellFormed(text: string): boolean {
  return (text as unknown as { isWellFormed(): boolean }).isWellFormed()
}
