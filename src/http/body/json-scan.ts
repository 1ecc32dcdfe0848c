/**
 * Scans JSON without building anything: checks structure, depth and number of values, and divides a large object into pieces that can
 * be parsed one by one.
 *
 * Called by `json.ts`. Fails: AppError validation_error, path `body`, with the byte offset of a syntax error.
 */
import { isUtf8 } from 'node:buffer'
import { AppError } from '../../core/errors.js'

export interface JsonBounds {
  /** Fields, entries, lists and objects together. */
  readonly values: number
  /** Limit within one entry of a list in a field of the outermost object, e.g. one message of a batch, and within any other field. */
  readonly entryValues?: number
}

/** Maximum nesting of lists and objects. */
export const MAX_DEPTH = 100
/** Characters; a double needs 25, but some writers add many zeros. */
const MAX_NUMBER = 65_536
/** Octets and values after which a piece ends; one long entry can exceed both. */
const PIECE_OCTETS = 65_536
const PIECE_VALUES = 2_000
/** Octets; `JSON.parse` takes milliseconds for a longer text. */
const LONG_TEXT = 131_072
/** Octets compared one by one before searching for the closing quote is faster. */
const SHORT = 48

const WORD = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/
const BYTE_ORDER_MARK = Buffer.from('\ufeff')

export const BACKSLASH = 0x5c
const [QUOTE, COMMA, COLON] = [0x22, 0x2c, 0x3a]
const [BEGIN_LIST, END_LIST, BEGIN_OBJECT, END_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d]
const [SPACE, TAB, LF, CR] = [0x20, 0x09, 0x0a, 0x0d]

/** A run of fields or entries that are separated by commas: of the outermost object, or of the container in one of its fields. */
export interface JsonPiece {
  readonly from: number
  readonly to: number
  /** The field that holds the container; absent for fields of the outermost object. */
  readonly field?: { readonly name: string; readonly isList: boolean; readonly isContinued: boolean }
}

/** Offsets of the content of a string. */
export interface LongText {
  readonly from: number
  readonly to: number
}

export interface ScannedJson {
  readonly isObject: boolean
  /** Values that are built in parts. */
  readonly texts: readonly LongText[]
  /** Empty unless it is an object. */
  readonly pieces: readonly JsonPiece[]
}

/** The next token allowed; the `OrEnd` members apply right after `[` and `{`. */
type Expected = 'value' | 'valueOrEnd' | 'name' | 'nameOrEnd' | 'colon' | 'commaOrEnd' | 'nothing'

/**
 * Checks structure and limits.
 *
 * @param checksStrings also checks what is in strings, to find the place of a fault
 * @throws AppError validation_error
 */
export function scanJson(body: Buffer, bounds: JsonBounds, checksStrings = false): ScannedJson {
  if (!isUtf8(body)) throw refused('is not valid UTF-8')
  const scan = new JsonScan(body, bounds, checksStrings)
  scan.run()
  return { isObject: scan.isObject, pieces: scan.pieces.pieces, texts: scan.texts }
}

class JsonScan {
  readonly pieces: Pieces
  readonly texts: LongText[] = []
  isObject = false
  private readonly body: Buffer
  private readonly bounds: JsonBounds
  private readonly checksStrings: boolean
  /** Whether each open container is a list. */
  private readonly open: boolean[] = []
  private expected: Expected = 'value'
  private values = 0
  /** Value count at the start of the current entry. */
  private valuesBefore = 0

  constructor(body: Buffer, bounds: JsonBounds, checksStrings: boolean) {
    this.body = body
    this.bounds = bounds
    this.checksStrings = checksStrings
    this.pieces = new Pieces(body)
  }

  run(): void {
    const { body, pieces, open } = this
    let at = jsonStart(body)
    while (at < body.length) {
      const octet = body[at] ?? 0
      switch (octet) {
        case SPACE:
        case LF:
        case CR:
        case TAB:
          break
        case QUOTE:
          at = this.readString(at)
          break
        case COMMA:
          if (this.expected !== 'commaOrEnd') throw broken(at)
          this.expected = open.at(-1) ? 'value' : 'name'
          if (this.isObject && open.length <= 2) pieces.comma(at, open.length, this.values)
          break
        case COLON:
          if (this.expected !== 'colon') throw broken(at)
          this.expected = 'value'
          break
        case BEGIN_LIST:
        case BEGIN_OBJECT:
          this.begin(at, octet === BEGIN_LIST)
          break
        case END_LIST:
        case END_OBJECT:
          this.end(at, octet === END_LIST)
          break
        default:
          at = this.readWord(at)
      }
      at += 1
    }
    if (this.expected !== 'nothing') throw broken(body.length)
  }

  private begin(at: number, isList: boolean): void {
    const { open } = this
    if (open.length === MAX_DEPTH) throw refused(`is nested deeper than ${MAX_DEPTH} levels`)
    this.countValue(at)
    if (open.length === 0) this.isObject = !isList
    if (this.isObject && open.length === 0) this.pieces.begin(at)
    if (this.isObject && open.length === 1) this.pieces.beginField(at, isList)
    open.push(isList)
    this.expected = isList ? 'valueOrEnd' : 'nameOrEnd'
  }

  private end(at: number, isList: boolean): void {
    const { open, expected } = this
    const mayEnd = expected === 'commaOrEnd' || expected === (isList ? 'valueOrEnd' : 'nameOrEnd')
    if (open.at(-1) !== isList || !mayEnd) throw broken(at)
    if (this.isObject && open.length <= 2) this.pieces.end(at, open.length)
    open.pop()
    this.expected = open.length > 0 ? 'commaOrEnd' : 'nothing'
  }

  /** @returns offset of its last octet */
  private readString(at: number): number {
    const isName = this.expected === 'name' || this.expected === 'nameOrEnd'
    if (!isName) this.countValue(at)
    const end = closingQuote(this.body, at + 1)
    if (end === -1) throw broken(this.body.length)
    if (!isName && end - at > LONG_TEXT) this.texts.push({ from: at + 1, to: end })
    if (this.checksStrings)
      try {
        JSON.parse(this.body.toString('utf8', at, end + 1))
      } catch {
        throw broken(at + 1)
      }
    if (isName) {
      if (this.isObject && this.open.length === 1) this.pieces.name(at, end + 1)
      this.expected = 'colon'
    } else this.expected = this.open.length > 0 ? 'commaOrEnd' : 'nothing'
    return end
  }

  /** A number, true, false or null. @returns offset of its last octet */
  private readWord(at: number): number {
    const end = wordEnd(this.body, at)
    this.countValue(at)
    if (end - at > MAX_NUMBER || !WORD.test(this.body.toString('latin1', at, end))) throw broken(at)
    this.expected = this.open.length > 0 ? 'commaOrEnd' : 'nothing'
    return end - 1
  }

  private countValue(at: number): void {
    if (this.expected !== 'value' && this.expected !== 'valueOrEnd') throw broken(at)
    const { values, entryValues } = this.bounds
    const { open } = this
    if (open.length < 2 || (open.length === 2 && open[1])) this.valuesBefore = this.values
    this.values += 1
    if (this.values > values) throw refused(`has more than ${values} values, counting every field and entry`)
    if (entryValues !== undefined && this.values - this.valuesBefore > entryValues)
      throw refused(`has more than ${entryValues} values in one entry, counting every field and entry`)
  }
}

/** Cuts the outermost object into pieces. A container in one of its fields is cut out once it is longer than a piece. */
class Pieces {
  readonly pieces: JsonPiece[] = []
  private readonly body: Buffer
  /** Start of the fields of the outermost object that are in no piece yet. */
  private fieldsFrom = 0
  private lastComma = -1
  private nameFrom = 0
  private nameTo = 0
  /** Start of the entries of the field's container that are in no piece yet. */
  private entriesFrom = 0
  private isList = false
  private isCutOut = false
  private valuesBefore = 0

  constructor(body: Buffer) {
    this.body = body
  }

  begin(at: number): void {
    this.fieldsFrom = at + 1
  }

  name(from: number, to: number): void {
    this.nameFrom = from
    this.nameTo = to
  }

  beginField(at: number, isList: boolean): void {
    this.entriesFrom = at + 1
    this.isList = isList
    this.isCutOut = false
  }

  comma(at: number, depth: number, values: number): void {
    const from = depth === 1 ? this.fieldsFrom : this.entriesFrom
    if (depth === 1) this.lastComma = at
    if (at - from < PIECE_OCTETS && values - this.valuesBefore < PIECE_VALUES) return
    this.valuesBefore = values
    if (depth === 1) this.cutFields(at)
    else this.cutEntries(at)
  }

  end(at: number, depth: number): void {
    if (depth === 1) {
      this.cutFields(at)
      return
    }
    if (!this.isCutOut) return
    this.cutEntries(at)
    this.fieldsFrom = at + 1
  }

  /** A comma directly after a container that was cut out belongs to no piece. */
  private cutFields(to: number): void {
    const text = this.body.subarray(this.fieldsFrom, to)
    const start = text.findIndex(octet => octet > SPACE)
    if (start >= 0) {
      const from = this.fieldsFrom + start + (text[start] === COMMA ? 1 : 0)
      if (from < to) this.pieces.push({ from, to })
    }
    this.fieldsFrom = to + 1
  }

  private cutEntries(to: number): void {
    const { isCutOut, isList } = this
    if (!isCutOut && this.lastComma > this.fieldsFrom) this.cutFields(this.lastComma)
    this.isCutOut = true
    const name = JSON.parse(this.body.toString('utf8', this.nameFrom, this.nameTo)) as string
    this.pieces.push({ from: this.entriesFrom, to, field: { name, isList, isContinued: isCutOut } })
    this.entriesFrom = to + 1
  }
}

function broken(at: number): AppError {
  return refused(`is not valid JSON (at byte ${at})`)
}

export function refused(problem: string): AppError {
  return new AppError('validation_error', `body ${problem}`, { path: 'body' })
}

/** The end of a number or literal. */
function wordEnd(body: Buffer, from: number): number {
  for (let at = from; at < body.length; at += 1)
    switch (body[at] ?? 0) {
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
  return body.length
}

/** @returns -1 if there is none */
function closingQuote(body: Buffer, from: number): number {
  const limit = Math.min(body.length, from + SHORT)
  for (let at = from; at < limit; at += 1) {
    const octet = body[at] ?? 0
    if (octet === QUOTE) return at
    if (octet === BACKSLASH) break
  }
  let end = body.indexOf(QUOTE, from)
  while (end !== -1 && backslashesBefore(body, from, end) % 2 === 1) end = body.indexOf(QUOTE, end + 1)
  return end
}

export function backslashesBefore(body: Buffer, from: number, to: number): number {
  let at = to
  while (at > from && body[at - 1] === BACKSLASH) at -= 1
  return to - at
}

/** After a byte order mark. */
export function jsonStart(body: Buffer): number {
  return body.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK.length : 0
}
