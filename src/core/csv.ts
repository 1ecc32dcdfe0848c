/**
 * Comma-separated values, read as they come in and written so that a spreadsheet takes no cell for a formula.
 *
 * Called by imports and exports. Pure; knows nothing of what the cells mean. Standard: RFC 4180, reading also LF line ends,
 * a byte order mark, and semicolons where the first line has no comma.
 * Fails: reading throws a plain Error, naming the line, for quotes that do not close and cells or rows that are too long.
 */

/** Characters of one cell. */
const MOST_CELL = 65_536
const MOST_CELLS = 200

/** What a spreadsheet takes for the beginning of a formula. */
const FORMULA = /^[=+\-@\t\r]/

export interface CsvRow {
  /** Of its first line in the file, from 1. */
  readonly line: number
  readonly cells: readonly string[]
}

/** Rows of a text that comes in pieces; empty lines are passed over. A guard against formulas is taken off again. */
export class CsvReader {
  private separator: ',' | ';' | undefined
  private cells: string[] = []
  private cell = ''
  private state: 'start' | 'plain' | 'quoted' | 'quote' = 'start'
  private line = 1
  private rowLine = 1
  private isFirstPiece = true

  /** @returns the rows that this piece completes. @throws Error */
  read(piece: string): CsvRow[] {
    const text = this.isFirstPiece ? piece.replace(/^\ufeff/, '') : piece
    if (text !== '') this.isFirstPiece = false
    this.separator ??= separatorOf(text)
    const rows: CsvRow[] = []
    for (const character of text) this.take(character, rows)
    return rows
  }

  /** The last row, where no line end follows it. @throws Error */
  end(): CsvRow[] {
    if (this.state === 'quoted') throw new Error(`line ${this.rowLine}: a quote is not closed`)
    const rows: CsvRow[] = []
    if (this.cell !== '' || this.cells.length > 0 || this.state === 'quote') this.endRow(rows)
    return rows
  }

  private take(character: string, rows: CsvRow[]): void {
    if (this.state === 'quoted') {
      if (character === '"') this.state = 'quote'
      else this.add(character)
    } else if (character === '"' && this.state === 'quote') {
      this.add('"')
      this.state = 'quoted'
    } else if (character === '"' && this.state === 'start') this.state = 'quoted'
    else if (character === this.separator) this.endCell()
    else if (character === '\n') this.endRow(rows)
    else if (character !== '\r') {
      this.add(character)
      this.state = 'plain'
    }
    if (character === '\n') this.line += 1
  }

  private add(character: string): void {
    if (this.cell.length >= MOST_CELL) throw new Error(`line ${this.rowLine}: a cell is too long`)
    this.cell += character
  }

  private endCell(): void {
    if (this.cells.length >= MOST_CELLS) throw new Error(`line ${this.rowLine}: too many cells`)
    this.cells.push(withoutGuard(this.cell))
    this.cell = ''
    this.state = 'start'
  }

  private endRow(rows: CsvRow[]): void {
    const isEmpty = this.cells.length === 0 && this.cell === '' && this.state === 'start'
    this.endCell()
    if (!isEmpty) rows.push({ line: this.rowLine, cells: this.cells })
    this.cells = []
    this.rowLine = this.line + 1
  }
}

/** One row, without the line end. */
export function csvRow(cells: readonly string[]): string {
  return cells.map(csvCell).join(',')
}

function csvCell(text: string): string {
  const guarded = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded
}

function withoutGuard(cell: string): string {
  return cell.startsWith("'") && FORMULA.test(cell.slice(1)) ? cell.slice(1) : cell
}

function separatorOf(text: string): ',' | ';' {
  const firstLine = text.split('\n', 1)[0] ?? ''
  return firstLine.includes(';') && !firstLine.includes(',') ? ';' : ','
}
