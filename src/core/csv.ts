/**
 * Streaming CSV reader, and a CSV writer whose cells spreadsheets do not evaluate as formulas.
 * Standard: RFC 4180. Also reads LF and CR line ends, a byte order mark, stray quotes, Excel's `sep=;` line, and semicolons or tabs as
 * separators, and spaces around a quoted cell. Rows may differ in their number of cells. Memory is bounded: an oversized row is not built but reported with its line, and
 * reading continues after it.
 * Fails: reading throws a plain Error, naming the line, if a quote is not closed.
 */

/** Octets of one row without separators. */
const MAX_ROW_OCTETS = 262_144
/** Octets of one cell in the file. */
const MAX_CELL_OCTETS = 131_072
const MAX_CELLS = 200
/** Octets of the first line examined to detect the separator. */
const MAX_DETECTION_OCTETS = 65_536
/** Octets parsed per step: under a millisecond. */
const PIECE_OCTETS = 65_536

/** Characters that start a formula in spreadsheets, ASCII or full-width, including behind guard quotes. */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/
const MUST_BE_QUOTED = /[",\r\n]/

const [TAB, LF, CR, SPACE, QUOTE, COMMA, SEMICOLON] = [0x09, 0x0a, 0x0d, 0x20, 0x22, 0x2c, 0x3b]
const NOTHING: Buffer = Buffer.alloc(0)

export interface CsvRow {
  /** First line of the row in the file, from 1. */
  readonly line: number
  readonly cells: readonly string[]
  /** Why reading the row was aborted; `cells` then holds the cells before the limit. */
  readonly fault?: string
}

/**
 * Rows of UTF-8 text, in batches. Skips empty lines and removes formula guards.
 *
 * @throws Error
 */
export async function* readCsv(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly CsvRow[], void, undefined> {
  let parser: Parser | undefined
  let held: Buffer = NOTHING
  for await (const piece of pieces) {
    const octets = Buffer.from(piece.buffer, piece.byteOffset, piece.length)
    if (parser) {
      yield* rowsIn(parser, octets)
      continue
    }
    held = held.length === 0 ? octets : Buffer.concat([held, octets])
    if (held.length < MAX_DETECTION_OCTETS && !hasLineEnd(octets)) continue
    const beginning = readBeginning(held)
    parser = new Parser(beginning)
    yield* rowsIn(parser, held.subarray(beginning.skipped))
  }
  if (!parser) {
    const beginning = readBeginning(held)
    parser = new Parser(beginning)
    yield* rowsIn(parser, held.subarray(beginning.skipped))
  }
  yield parser.end()
}

function* rowsIn(parser: Parser, octets: Buffer): Generator<readonly CsvRow[]> {
  for (let at = 0; at < octets.length; at += PIECE_OCTETS)
    yield parser.take(octets.subarray(at, at + PIECE_OCTETS))
}

function hasLineEnd(octets: Buffer): boolean {
  return octets.includes(LF) || octets.includes(CR)
}

interface Beginning {
  readonly separator: number
  /** Octets before the first row. */
  readonly skipped: number
  /** The last of the skipped octets. */
  readonly last: number
  readonly line: number
}

/** @param octets at least the first line, up to `MAX_DETECTION_OCTETS` */
function readBeginning(octets: Buffer): Beginning {
  const bom = octets[0] === 0xef && octets[1] === 0xbb && octets[2] === 0xbf ? 3 : 0
  const text = octets.toString('latin1', bom, MAX_DETECTION_OCTETS)
  // Excel's `sep=` line names the separator.
  const named = /^"?sep=([^\w"\r\n])"?(?:\r\n|\r|\n|$)/i.exec(text)
  if (!named?.[1]) return { separator: separatorOf(text), skipped: bom, last: 0, line: 1 }
  const skipped = bom + named[0].length
  return { separator: named[1].charCodeAt(0), skipped, last: octets[skipped - 1] ?? 0, line: 2 }
}

/** The separator that occurs most often in the first line, outside quotes. */
function separatorOf(text: string): number {
  const counts = new Map([COMMA, SEMICOLON, TAB].map(separator => [separator, 0]))
  let isQuoted = false
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === LF || code === CR) break
    if (code === QUOTE) isQuoted = !isQuoted
    else if (!isQuoted && counts.has(code)) counts.set(code, (counts.get(code) ?? 0) + 1)
  }
  const [[separator] = [COMMA]] = [...counts].sort(([, one], [, other]) => other - one)
  return separator
}

/**
 * Parser state within a cell.
 *
 *   START -> START: a space; START -> QUOTED: a quote; START -> PLAIN: any other character
 *   QUOTED -> CLOSED: a quote; CLOSED -> QUOTED: a second quote, which is an escaped one
 *   CLOSED, PADDED -> PADDED: a space
 *   CLOSED, PADDED -> PLAIN: any other character; the quotes are then literal
 */
const [START, PLAIN, QUOTED, CLOSED, PADDED] = [0, 1, 2, 3, 4]

class Parser {
  private readonly separator: number
  /** 1 for octets with a special meaning. */
  private readonly isSpecial = new Uint8Array(256)
  private state = START
  private rows: CsvRow[] = []
  private cells: string[] = []
  private rowOctets = 0
  private fault: string | undefined
  /** Line being read, and first line of the current row. */
  private line: number
  private rowLine: number
  /** Octets of the current cell so far. */
  private carried = NOTHING
  /** The octet before them. */
  private previous: number

  constructor({ separator, line, last }: Beginning) {
    this.separator = separator
    this.previous = last
    this.line = line
    this.rowLine = line
    for (const octet of [separator, LF, CR, QUOTE]) this.isSpecial[octet] = 1
  }

  /** @returns the rows completed by this piece */
  take(piece: Buffer): readonly CsvRow[] {
    const { separator, isSpecial, carried } = this
    const octets = carried.length === 0 ? piece : Buffer.concat([carried, piece])
    let { state } = this
    let start = 0
    for (let at = carried.length; at < octets.length; at += 1) {
      const octet = octets[at] as number
      if (isSpecial[octet] === 0) {
        if (state !== QUOTED && state !== PLAIN) state = octet === SPACE ? besideSpace(state) : PLAIN
      } else if (octet === QUOTE) {
        if (state === START || state === CLOSED) state = QUOTED
        else if (state === QUOTED) state = CLOSED
        else state = PLAIN
      } else if (octet === separator) {
        if (state === QUOTED) continue
        this.endCell(octets, start, at, state)
        state = START
        start = at + 1
      } else {
        const isSecondHalf = octet === LF && (at > 0 ? octets[at - 1] : this.previous) === CR
        if (!isSecondHalf) this.line += 1
        if (state === QUOTED) continue
        if (!isSecondHalf) {
          this.endCell(octets, start, at, state)
          this.endRow()
        }
        this.rowLine = this.line
        state = START
        start = at + 1
      }
    }
    this.state = state
    this.previous = octets.at(-1) ?? this.previous
    this.carry(octets.subarray(start))
    return this.takeRows()
  }

  /** @returns the last row if it has no line end @throws Error */
  end(): readonly CsvRow[] {
    const { state, carried } = this
    if (state === QUOTED) throw new Error(`line ${this.rowLine}: a quote is not closed`)
    this.endCell(carried, 0, carried.length, state)
    this.endRow()
    return this.takeRows()
  }

  private takeRows(): readonly CsvRow[] {
    const { rows } = this
    this.rows = []
    return rows
  }

  private carry(rest: Buffer): void {
    if (rest.length > MAX_CELL_OCTETS) this.fault ??= TOO_LARGE_CELL
    this.carried = this.fault === undefined ? rest : NOTHING
  }

  private endCell(octets: Buffer, start: number, end: number, state: number): void {
    if (this.fault !== undefined) return
    this.rowOctets += end - start
    if (this.cells.length === MAX_CELLS) this.fault = `the row has more than ${MAX_CELLS} cells`
    else if (end - start > MAX_CELL_OCTETS) this.fault = TOO_LARGE_CELL
    else if (this.rowOctets > MAX_ROW_OCTETS) this.fault = `the row is larger than ${inKb(MAX_ROW_OCTETS)}`
    else if (state === CLOSED || state === PADDED)
      this.cells.push(withoutGuard(unquoted(withoutPadding(octets, start, end))))
    else this.cells.push(withoutGuard(octets.toString('utf8', start, end)))
  }

  private endRow(): void {
    const { cells, fault, rowLine: line } = this
    const isEmpty = cells.length === 1 && cells[0] === ''
    if (fault !== undefined) this.rows.push({ line, cells, fault })
    else if (!isEmpty) this.rows.push({ line, cells })
    this.cells = []
    this.rowOctets = 0
    this.fault = undefined
  }
}

const TOO_LARGE_CELL = `the row has a cell larger than ${inKb(MAX_CELL_OCTETS)}`

function inKb(octets: number): string {
  return `${octets / 1_024} KB`
}

function besideSpace(state: number): number {
  return state === START ? START : PADDED
}

/** The text between the quotes of a cell that may have spaces around them. */
function withoutPadding(octets: Buffer, start: number, end: number): string {
  let [first, last] = [start, end - 1]
  while (octets[first] === SPACE) first += 1
  while (octets[last] === SPACE) last -= 1
  return octets.toString('utf8', first + 1, last)
}

function unquoted(text: string): string {
  return text.includes('"') ? text.replaceAll('""', '"') : text
}

/** Rows as CSV, without a final line end. */
export function csvText(rows: readonly (readonly string[])[]): string {
  return rows.map(cells => cells.map(cellText).join(',')).join('\n')
}

function cellText(cell: string): string {
  const guarded = FORMULA.test(cell) ? `'${cell}` : cell
  return MUST_BE_QUOTED.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

function withoutGuard(cell: string): string {
  return cell.startsWith("'") && FORMULA.test(cell) ? cell.slice(1) : cell
}
