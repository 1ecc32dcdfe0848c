/**
 * Comma-separated values, read as they come in and written so that a spreadsheet takes no cell for a formula.
 *
 * Called by imports and exports; knows nothing of what the cells mean. Standard: RFC 4180, reading also LF line ends,
 * a byte order mark, stray quotes, and semicolons or tabs where the first line has no comma. Rows may have any number of cells.
 * Fails: reading throws a plain Error, naming the line, where rows cannot be told apart (a quote that does not close) or are
 * too long. What is wrong inside of a row is for who reads it: each row knows its line.
 */
import { CsvError, parse } from 'csv-parse'
import { stringify } from 'csv-stringify/sync'

/** Octets of one row. */
const MOST_OCTETS = 262_144
const MOST_CELLS = 200
/** Of the first line, for its separator. */
const MOST_LOOKED_AT = 65_536
/** Parsed in one go: some 4 ms. Others have their turn in between. */
const PIECE_OCTETS = 16_384

/** What a spreadsheet takes for the beginning of a formula. */
const FORMULA = /^[=+\-@\t\r]/

export interface CsvRow {
  /** Of its first line in the file, from 1. */
  readonly line: number
  readonly cells: readonly string[]
}

/**
 * Rows of UTF-8 text that comes in pieces of any size, some at a time; empty lines are passed over. A guard against formulas is
 * taken off again.
 *
 * @throws Error
 */
export async function* readCsv(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<readonly CsvRow[], void, undefined> {
  let parsing: Parsing | undefined
  const held: Uint8Array[] = []
  let heldOctets = 0
  for await (const piece of pieces) {
    if (!parsing) {
      held.push(piece)
      heldOctets += piece.length
      if (!piece.includes(0x0a) && heldOctets < MOST_LOOKED_AT) continue
    }
    const octets = parsing ? piece : Buffer.concat(held)
    parsing ??= new Parsing(separatorOf(octets))
    for (let at = 0; at < octets.length; at += PIECE_OCTETS)
      yield await parsing.take(octets.subarray(at, at + PIECE_OCTETS))
  }
  const rest = Buffer.concat(parsing ? [] : held)
  parsing ??= new Parsing(separatorOf(rest))
  yield await parsing.take(rest)
  yield await parsing.end()
}

type Separator = ',' | ';' | '\t'

function separatorOf(octets: Uint8Array): Separator {
  const [firstLine = ''] = Buffer.from(octets).toString('latin1').split('\n', 1)
  if (firstLine.includes(',')) return ','
  if (firstLine.includes(';')) return ';'
  return firstLine.includes('\t') ? '\t' : ','
}

/** One text on its way through the parser. */
class Parsing {
  private readonly parser
  private rows: CsvRow[] = []
  /** Where the row that comes next begins. */
  private line = 1
  private hasTooMany = false

  constructor(separator: Separator) {
    this.parser = parse({
      bom: true,
      delimiter: separator,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      relax_quotes: true,
      max_record_size: MOST_OCTETS,
    })
    this.parser.on('data', (cells: string[]) => this.add(cells))
    // Told to whoever waits for the piece.
    this.parser.on('error', () => undefined)
  }

  async take(piece: Uint8Array): Promise<readonly CsvRow[]> {
    return this.after(done => this.parser.write(piece, done))
  }

  async end(): Promise<readonly CsvRow[]> {
    return this.after(done => {
      this.parser.once('error', done).once('end', () => done())
      this.parser.end()
    })
  }

  private async after(begin: (done: (error?: Error | null) => void) => void): Promise<readonly CsvRow[]> {
    try {
      await new Promise<void>((resolve, reject) => begin(error => (error ? reject(error) : resolve())))
    } catch (error) {
      throw new Error(`line ${this.line}: ${whatIsWrong(error)}`, { cause: error })
    }
    if (this.hasTooMany) throw new Error(`line ${this.line}: too many cells`)
    const { rows } = this
    this.rows = []
    return rows
  }

  private add(cells: readonly string[]): void {
    if (this.hasTooMany) return
    this.hasTooMany = cells.length > MOST_CELLS
    if (this.hasTooMany) return
    const isEmpty = cells.length === 1 && cells[0] === ''
    if (!isEmpty) this.rows.push({ line: this.line, cells: cells.map(withoutGuard) })
    this.line += 1
    for (const cell of cells)
      for (let at = cell.indexOf('\n'); at >= 0; at = cell.indexOf('\n', at + 1)) this.line += 1
  }
}

function whatIsWrong(error: unknown): string {
  if (!(error instanceof CsvError)) return error instanceof Error ? error.message : String(error)
  if (error.code === 'CSV_QUOTE_NOT_CLOSED') return 'a quote is not closed'
  return error.code === 'CSV_MAX_RECORD_SIZE' ? 'a row is too long' : error.message
}

/** Rows as text, without the last line end. */
export function csvText(rows: readonly (readonly string[])[]): string {
  return stringify(
    rows.map(cells => cells.map(withGuard)),
    { quoted_match: /\r/, record_delimiter: '\n', eof: false },
  )
}

function withGuard(cell: string): string {
  return FORMULA.test(cell) ? `'${cell}` : cell
}

function withoutGuard(cell: string): string {
  return cell.startsWith("'") && FORMULA.test(cell.slice(1)) ? cell.slice(1) : cell
}
