/**
 * Parses JSON request bodies within limits on depth, values and names.
 *
 * Small bodies are parsed at once (`parseJson`). Large ones are scanned first, without building anything (`json-scan.ts`), and then built
 * in short steps (`buildInSteps`), so that the caller can yield between them. Both accept what `JSON.parse` accepts, except what no value
 * represents faithfully: numbers beyond a double (1e400), unpaired surrogates (\ud800) and invalid UTF-8.
 * Standard: RFC 8259. A leading byte order mark is ignored (§8.1).
 * Fails: AppError validation_error, path `body`, with the byte offset of a syntax error.
 */
import { isUtf8 } from 'node:buffer'
import {
  BACKSLASH,
  backslashesBefore,
  jsonStart,
  MAX_DEPTH,
  refused,
  scanJson,
  type JsonBounds,
  type JsonPiece,
  type LongText,
  type ScannedJson,
} from './json-scan.js'

/** Characters of a field name. */
const MAX_NAME = 1_000
/** Octets of a long text decoded at once. */
const TEXT_PART = 65_536
/** Octets of the longest escape, `\uXXXX`. */
const ESCAPE_OCTETS = 6
/** Octets: a digit and a comma. */
const SHORTEST_VALUE = 2

/** @throws AppError validation_error */
export function parseJson(body: Buffer, bounds: JsonBounds): unknown {
  return withPlaceOfFault(body, bounds, () => {
    if (body.length > SHORTEST_VALUE * Math.min(bounds.values, bounds.entryValues ?? Infinity))
      scanJson(body, bounds)
    else if (!isUtf8(body)) throw refused('is not valid UTF-8')
    const value = parseAll(body)
    refuseUnfit(value, body)
    return value
  })
}

/** Scans a body, then builds it. @throws AppError validation_error */
export function parseScanned(body: Buffer, bounds: JsonBounds): { scanned: ScannedJson; value: unknown } {
  return withPlaceOfFault(body, bounds, () => {
    const scanned = scanJson(body, bounds)
    const steps = buildInSteps(body, scanned, part => part)
    let step = steps.next()
    while (!step.done) step = steps.next()
    refuseUnfit(step.value, body)
    return { scanned, value: step.value }
  })
}

/** `JSON.parse` does not always say where a fault is. */
function withPlaceOfFault<T>(body: Buffer, bounds: JsonBounds, parse: () => T): T {
  try {
    return parse()
  } catch (error) {
    if (error instanceof SyntaxError) scanJson(body, bounds, true)
    throw error
  }
}

/**
 * Builds the value of a scanned body.
 *
 * @param convert applied to objects with some of the fields of the outermost one
 */
export function* buildInSteps(
  body: Buffer,
  { isObject, pieces, texts }: ScannedJson,
  convert: (part: object) => unknown,
): Generator<void, unknown> {
  if (!isObject) return convert(parseAll(body) as object)
  const whole: Record<string, unknown> = {}
  let nextText = 0
  for (const piece of pieces) {
    const known: string[] = []
    let json = ''
    let at = piece.from
    for (let text = texts[nextText]; text && text.to < piece.to; text = texts[++nextText]) {
      json += body.toString('utf8', at, text.from) + PLACEHOLDER + String(known.length)
      known.push(yield* decodeLongText(body, text))
      at = text.to
    }
    addPiece(whole, json + body.toString('utf8', at, piece.to), known, piece, convert)
    yield
  }
  return whole
}

/** Stands for a long text, before its index. No body that passed the checks has a string like it. */
const PLACEHOLDER = '\\ud800'

function addPiece(
  whole: Record<string, unknown>,
  json: string,
  texts: readonly string[],
  { field }: JsonPiece,
  convert: (part: object) => unknown,
): void {
  const revive = (_name: string, value: unknown) =>
    typeof value === 'string' && value.startsWith('\ud800') ? texts[Number(value.slice(1))] : value
  const enclosed = field?.isList ? `[${json}]` : `{${json}}`
  const content = (texts.length > 0 ? JSON.parse(enclosed, revive) : JSON.parse(enclosed)) as object
  if (!field) {
    addFields(whole, convert(content) as object)
    return
  }
  const part = convert({ [field.name]: content }) as Record<string, object>
  const known = field.isContinued && Object.hasOwn(whole, field.name) ? whole[field.name] : undefined
  if (known === undefined) addFields(whole, part)
  else if (Array.isArray(known)) for (const entry of part[field.name] as unknown[]) known.push(entry)
  else addFields(known as Record<string, unknown>, part[field.name] ?? {})
}

function* decodeLongText(body: Buffer, { from, to }: LongText): Generator<void, string> {
  const parts: string[] = []
  for (let at = from; at < to;) {
    const end = at + TEXT_PART < to ? characterStart(body, at, at + TEXT_PART) : to
    parts.push(JSON.parse(`"${body.toString('utf8', at, end)}"`) as string)
    at = end
    yield
  }
  return parts.join('')
}

/** @returns the start of the character or escape sequence that `to` lies in */
function characterStart(body: Buffer, from: number, to: number): number {
  let at = to
  // RFC 3629 §3: octets that continue a character.
  while (((body[at] ?? 0) & 0xc0) === 0x80) at -= 1
  const last = body.lastIndexOf(BACKSLASH, at - 1)
  const isInEscape =
    last >= from && at - last < ESCAPE_OCTETS && backslashesBefore(body, from, last + 1) % 2 === 1
  return isInEscape ? last : at
}

/** Plain assignment of `__proto__` would set the prototype. */
function addFields(object: Record<string, unknown>, fields: object): void {
  for (const [name, value] of Object.entries(fields))
    if (name === '__proto__')
      Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
    else object[name] = value
}

function parseAll(body: Buffer): unknown {
  return JSON.parse(body.toString('utf8', jsonStart(body))) as unknown
}

/** The limits that are checked on the value. @throws AppError validation_error */
function refuseUnfit(value: unknown, body: Buffer): void {
  // Valid UTF-8 contains no surrogates (RFC 3629 §3), so only escapes can produce one.
  refuseUnfitValue(value, body.includes('\\u'), 0)
}

function refuseUnfitValue(value: unknown, mayHaveHalfPairs: boolean, depth: number): void {
  if (typeof value === 'string') {
    if (mayHaveHalfPairs) refuseHalfPairs(value)
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw refused('contains a number that is out of range, such as 1e400')
  } else if (typeof value === 'object' && value !== null) {
    if (depth === MAX_DEPTH) throw refused(`is nested deeper than ${MAX_DEPTH} levels`)
    if (Array.isArray(value)) for (const entry of value) refuseUnfitValue(entry, mayHaveHalfPairs, depth + 1)
    else
      for (const name in value) {
        if (name.length > MAX_NAME) throw refused(`has a field name longer than ${MAX_NAME} characters`)
        refuseHalfPairs(name)
        refuseUnfitValue((value as Record<string, unknown>)[name], mayHaveHalfPairs, depth + 1)
      }
  }
}

function refuseHalfPairs(text: string): void {
  const isWellFormed = (text as unknown as { isWellFormed(): boolean }).isWellFormed()
  if (!isWellFormed) throw refused('contains an unpaired surrogate, such as \\ud800')
}
