/**
 * Runs in an import's reader thread: octets to characters, CSV rows, contact fields.
 *
 * Called by `import-reader-main.ts`. Deterministic: a resumed import skips as many rows as are done. Never fails; an unreadable file is
 * reported as an answer.
 */
import { readCsv, type CsvRow } from '../../../core/csv.js'
import { describeError } from '../../../core/errors.js'
import { streamDecoder } from '../../../mail/mime/charset.js'
import type { OwnThread } from '../../../world/threads.js'
import type { Rejection } from '../import.js'
import { AddressRuns } from './address-runs.js'
import type { ReaderAnswer, ReaderOptions, ReaderTask } from './import-reader-protocol.js'
import { columnsToRead, readRow, rejected, type ColumnToRead, type SaidRow } from './read-row.js'
import { RowTeller } from './row-teller.js'
import { SeenAddresses } from './seen-addresses.js'

/** Maximum rows per file. */
export const MOST_ROWS = 2_000_000

export function serveImportReader(thread: OwnThread): void {
  const answer = (value: ReaderAnswer, handedOver?: readonly ArrayBuffer[]): void =>
    thread.post(value, handedOver)
  const options = thread.options as ReaderOptions
  const parts = new Parts(() => answer({ kind: 'taken' }))
  const teller = new RowTeller(options.skip, answer)
  thread.listen(message => {
    const task = message as ReaderTask
    if ('rowsTaken' in task) teller.taken(task.rowsTaken)
    else parts.add('octets' in task ? task.octets : undefined)
  })
  void readFile(options, parts, teller).then(
    () => answer({ kind: 'end' }),
    (error: unknown) => answer({ kind: 'fault', message: describeError(error).slice(0, 300) }),
  )
}

/** @throws Error if the file cannot be read further, after sending the rows before */
async function readFile(options: ReaderOptions, parts: Parts, teller: RowTeller): Promise<void> {
  const reading = new FileReading(options)
  const runs = new AddressRuns(options.order === 'address')
  const tellRun = () => teller.tell({ rows: runs.take(), octets: parts.octets })
  let heading = options.hasHeading ? 1 : 0
  try {
    for await (const rows of readCsv(asUtf8(parts, options.charset))) {
      for (const row of rows.slice(heading)) {
        const read = reading.read(row)
        if (read) runs.add(read)
        if (runs.isFull) await tellRun()
      }
      heading = Math.max(0, heading - rows.length)
    }
  } finally {
    await tellRun()
    await teller.end()
  }
}

class FileReading {
  private readonly columns: readonly ColumnToRead[]
  private readonly seen = new SeenAddresses()
  private rows = 0

  private readonly everyRow: ReaderOptions['everyRow']

  constructor({ columns, everyRow }: Pick<ReaderOptions, 'columns' | 'everyRow'>) {
    this.everyRow = everyRow
    this.columns = columnsToRead(columns)
  }

  /** @returns undefined for an empty row @throws Error above the maximum number of rows */
  read(row: CsvRow): SaidRow | Rejection | undefined {
    // Spreadsheets leave empty rows at the end.
    if (row.fault === undefined && row.cells.every(cell => cell.trim() === '')) return undefined
    this.rows += 1
    if (this.rows > MOST_ROWS)
      throw new Error(`line ${row.line}: a file has at most ${MOST_ROWS.toLocaleString('en')} rows; split it`)
    const read =
      row.fault === undefined ? readRow(this.columns, row, this.everyRow) : rejected(row, row.fault)
    if ('reason' in read) return read
    const before = this.seen.see(read.email, row.line)
    return before === undefined ? read : rejected(row, `duplicate of the address in line ${before}`)
  }
}

async function* asUtf8(pieces: AsyncIterable<Uint8Array>, charset: string): AsyncGenerator<Uint8Array> {
  // UTF-8 needs no decoding.
  if (charset === 'utf-8') {
    yield* pieces
    return
  }
  const decoder = streamDecoder(charset)
  if (!decoder) throw new Error(`unknown charset ${charset}`)
  for await (const piece of pieces) yield Buffer.from(decoder.decode(piece, { stream: true }))
  yield Buffer.from(decoder.decode())
}

/** Parts of the file, in order. */
class Parts implements AsyncIterable<Uint8Array> {
  /** Octets read so far. */
  octets = 0
  private readonly waiting: (Uint8Array | undefined)[] = []
  private readonly onTaken: () => void
  private wake: () => void = () => {}

  constructor(onTaken: () => void) {
    this.onTaken = onTaken
  }

  /** @param octets undefined after the last part */
  add(octets: Uint8Array | undefined): void {
    this.waiting.push(octets)
    this.wake()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      if (this.waiting.length === 0) await new Promise<void>(resolve => (this.wake = resolve))
      const octets = this.waiting.shift()
      if (!octets) return
      this.octets += octets.length
      yield octets
      this.onTaken()
    }
  }
}
