/**
 * The work of the thread that reads an imported file: octets to characters, to rows of CSV, to what each says of a contact.
 *
 * Called by `import-reader-main.ts`. The same file is read the same way each time, so that a process that goes on with an import
 * passes over as many rows as are done. Fails: never; what is wrong with the file is an answer.
 */
import { readCsv, type CsvRow } from '../../../core/csv.js'
import { describeError } from '../../../core/errors.js'
import { streamDecoder } from '../../../mail/mime/charset.js'
import type { OwnThread } from '../../../world/threads.js'
import type { ReaderAnswer, ReaderOptions, ReaderTask, ReadRow } from './import-reader-protocol.js'
import { readRow, rejected } from './read-row.js'
import { SeenAddresses } from './seen-addresses.js'

/** Rows of one file. */
export const MOST_ROWS = 2_000_000

export function serveImportReader(thread: OwnThread): void {
  const answer = (value: ReaderAnswer): void => thread.post(value)
  const tasks = new Tasks(thread, () => answer({ kind: 'taken' }))
  void readFile(thread.options as ReaderOptions, tasks, rows =>
    answer({ kind: 'rows', rows: JSON.stringify(rows), count: rows.length }),
  ).then(
    () => answer({ kind: 'end' }),
    (error: unknown) => answer({ kind: 'fault', message: describeError(error).slice(0, 300) }),
  )
}

async function readFile(
  options: ReaderOptions,
  tasks: AsyncIterable<Uint8Array>,
  tell: (rows: readonly ReadRow[]) => void,
): Promise<void> {
  const reading = new FileReading(options)
  let heading = options.hasHeading ? 1 : 0
  for await (const rows of readCsv(asUtf8(tasks, options.charset))) {
    const read = rows.slice(heading).flatMap(row => reading.read(row) ?? [])
    heading = Math.max(0, heading - rows.length)
    if (read.length > 0) tell(read)
  }
}

class FileReading {
  private readonly options: ReaderOptions
  private readonly seen = new SeenAddresses()
  private rows = 0

  constructor(options: ReaderOptions) {
    this.options = options
  }

  /** @returns undefined for one that is done already, or says nothing @throws Error where there are too many */
  read(row: CsvRow): ReadRow | undefined {
    // As spreadsheets leave them at the end.
    if (row.cells.every(cell => cell.trim() === '')) return undefined
    this.rows += 1
    if (this.rows > MOST_ROWS)
      throw new Error(`line ${row.line}: a file has at most ${MOST_ROWS.toLocaleString('en')} rows; split it`)
    const read = this.withoutRepetition(row, readRow(this.options.columns, row))
    return this.rows > this.options.skip ? read : undefined
  }

  private withoutRepetition(row: CsvRow, read: ReadRow): ReadRow {
    if ('reason' in read) return read
    const before = this.seen.see(read.email, row.line)
    return before === undefined ? read : rejected(row, `the address stands in line ${before} already`)
  }
}

async function* asUtf8(pieces: AsyncIterable<Uint8Array>, charset: string): AsyncGenerator<Uint8Array> {
  // Most files, which are valid as far as that.
  if (charset === 'utf-8') {
    yield* pieces
    return
  }
  const decoder = streamDecoder(charset)
  if (!decoder) throw new Error(`there is no charset ${charset}`)
  for await (const piece of pieces) yield Buffer.from(decoder.decode(piece, { stream: true }))
  yield Buffer.from(decoder.decode())
}

/** Parts of the file, in the order in which they are handed over. */
class Tasks implements AsyncIterable<Uint8Array> {
  private readonly waiting: ReaderTask[] = []
  private readonly onTaken: () => void
  private wake: () => void = () => {}

  constructor(thread: OwnThread, onTaken: () => void) {
    this.onTaken = onTaken
    thread.listen(message => {
      this.waiting.push(message as ReaderTask)
      this.wake()
    })
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    for (;;) {
      const task = this.waiting.shift()
      if (task === undefined) await new Promise<void>(resolve => (this.wake = resolve))
      else if ('isEnd' in task) return
      else {
        yield task.octets
        this.onTaken()
      }
    }
  }
}
