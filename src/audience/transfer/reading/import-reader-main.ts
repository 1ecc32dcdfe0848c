/**
 * The reader thread of an import: octets to characters, CSV rows, contact fields, in processing order.
 *
 * Started by `import-reader.ts`, never imported; one thread per import. Deterministic: a resumed import skips as many rows as are done.
 * Never fails; an unreadable file is reported as an answer.
 */
import { readCsv, type CsvRow } from '../../../core/csv.js'
import { describeError } from '../../../core/errors.js'
import { streamDecoder } from '../../../mail/mime/charset.js'
import { ownThread, stepAside, type OwnThread } from '../../../world/threads.js'
import type { DeclaredTypes } from '../../attributes/declared-values.js'
import { MAX_ROWS, type Rejection } from '../import.js'
import { ColumnScan } from './column-scan.js'
import { EncodedRows } from './encoded-rows.js'
import type { ReaderAnswer, ReaderOptions, ReaderTask, RowsRead } from './import-reader.js'
import { columnsToRead, readRow, rejected, type ColumnToRead, type ParsedRow } from './read-row.js'
import { SeenAddresses } from './seen-addresses.js'

/** Rows of the first run. Each run is four times as long, up to the maximum, so that writing starts soon. */
const FIRST_RUN_ROWS = 4_096
const RUN_GROWTH = 4
const MAX_RUN_ROWS = 65_536
/** Octets per run. Two runs are in memory: one being filled, one being written. */
const MAX_RUN_OCTETS = 33_554_432

/** Rows per message. */
const ROWS_AT_ONCE = 500
/** Rows sent but not acknowledged: more than one transaction takes, so that the next is ready. */
const ROWS_AHEAD = 4_000

function serve(thread: OwnThread): void {
  const answer = (value: ReaderAnswer, transfer?: readonly ArrayBuffer[]): void =>
    thread.post(value, transfer)
  const options = thread.options as ReaderOptions
  const parts = new Parts(() => answer({ kind: 'taken' }))
  const sender = new RowSender(options.skip, answer)
  thread.listen(message => {
    const task = message as ReaderTask
    if ('rowsTaken' in task) sender.acknowledged(task.rowsTaken)
    else parts.add('octets' in task ? task.octets : undefined)
  })
  const reading = options.isScan ? scanFile(options, parts, answer) : readFile(options, parts, sender)
  void reading.then(
    () => answer({ kind: 'end' }),
    (error: unknown) => answer({ kind: 'fault', message: describeError(error).slice(0, 300) }),
  )
}

/** @throws Error if the file cannot be read further, after sending the rows before */
async function readFile(options: ReaderOptions, parts: Parts, sender: RowSender): Promise<void> {
  const reading = new FileReading(options)
  const runs = new AddressRuns(options.order === 'address')
  const sendRun = () => sender.send({ rows: runs.take(), octets: parts.octets })
  let heading = options.hasHeading ? 1 : 0
  try {
    for await (const rows of readCsv(asUtf8(parts, options.charset))) {
      for (const row of rows.slice(heading)) {
        const read = reading.read(row)
        if (read) runs.add(read)
        if (runs.isFull) await sendRun()
      }
      heading = Math.max(0, heading - rows.length)
    }
  } finally {
    await sendRun()
    await sender.end()
  }
}

/** Finds the types of columns. A file that cannot be read to its end has those of the rows before. */
async function scanFile(
  options: ReaderOptions,
  parts: Parts,
  answer: (value: ReaderAnswer) => void,
): Promise<void> {
  const { columns, types, rules, everyRow } = options
  const scan = new ColumnScan(columns, { types, rules, everyRow, declared: new Map(options.declared) })
  let heading = options.hasHeading ? 1 : 0
  try {
    for await (const rows of readCsv(asUtf8(parts, options.charset))) {
      for (const row of rows.slice(heading)) scan.see(row)
      heading = Math.max(0, heading - rows.length)
      if (scan.isDecided) break
    }
  } catch {
    // Reading reports it.
  }
  answer({ kind: 'columns', columns: scan.finish() })
}

class FileReading {
  private readonly columns: readonly ColumnToRead[]
  private readonly seen = new SeenAddresses()
  private rows = 0

  private readonly everyRow: ReaderOptions['everyRow']
  private readonly declared: DeclaredTypes

  constructor({ columns, everyRow, declared }: Pick<ReaderOptions, 'columns' | 'everyRow' | 'declared'>) {
    this.everyRow = everyRow
    this.declared = new Map(declared)
    this.columns = columnsToRead(columns)
  }

  /** @returns undefined for an empty row @throws Error above the maximum number of rows */
  read(row: CsvRow): ParsedRow | Rejection | undefined {
    // Spreadsheets leave empty rows at the end.
    if (row.fault === undefined && row.cells.every(cell => cell.trim() === '')) return undefined
    this.rows += 1
    if (this.rows > MAX_ROWS)
      throw new Error(`line ${row.line}: a file has at most ${MAX_ROWS.toLocaleString('en')} rows; split it`)
    const read =
      row.fault === undefined
        ? readRow(this.columns, row, this.everyRow, this.declared)
        : rejected(row, row.fault)
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

/**
 * Processing order of a large file's rows: sorted by address in runs.
 *
 * Contacts are indexed by address. Rows in file order would update that index at random, which takes half the time of a million-row
 * import; sorted rows update neighbouring entries. The first run keeps the file's order, so that small files need no sorting.
 * Any change here needs a new `ImportOptions.order`: a resumed import skips as many rows as are done.
 */
class AddressRuns {
  private readonly isSorted: boolean
  private rows = new EncodedRows()
  private addresses: string[] = []
  private most = FIRST_RUN_ROWS
  private isFirst = true

  constructor(isSorted: boolean) {
    this.isSorted = isSorted
  }

  add(row: ParsedRow | Rejection): void {
    this.rows.add(row)
    // Rejections sort first, in file order.
    this.addresses.push('reason' in row ? '' : row.email)
  }

  /** If true, `take` must be called before adding. */
  get isFull(): boolean {
    return this.rows.count >= this.most || this.rows.octets >= MAX_RUN_OCTETS
  }

  /** Returns the current run and starts the next. */
  take(): EncodedRows {
    const { rows } = this
    if (this.isSorted && !this.isFirst) rows.order(by(this.addresses))
    this.most = Math.min(MAX_RUN_ROWS, RUN_GROWTH * this.most)
    this.isFirst = false
    this.rows = new EncodedRows()
    this.addresses = []
    return rows
  }
}

/** Code unit order, close enough to SQLite's. */
function by(addresses: readonly string[]): (one: number, other: number) => number {
  return (one, other) => {
    const [first = '', second = ''] = [addresses[one], addresses[other]]
    if (first === second) return one - other
    return first < second ? -1 : 1
  }
}

interface Run {
  readonly rows: EncodedRows
  /** File position after the run. */
  readonly octets: number
}

/** Sends the rows of each run in batches, limited by what the importer has acknowledged, while the next run is read. */
class RowSender {
  private readonly post: (answer: ReaderAnswer, transfer?: readonly ArrayBuffer[]) => void
  /** Rows still to skip. */
  private left: number
  /** Rows sent but not acknowledged. */
  private ahead = 0
  /** File position after the last run sent. */
  private octets = 0
  private sending: Promise<void> = Promise.resolve()
  private onAcknowledged: () => void = () => {}

  constructor(skip: number, post: RowSender['post']) {
    this.left = skip
    this.post = post
  }

  /** Resolves once the previous run is sent. */
  async send(run: Run): Promise<void> {
    await this.sending
    this.sending = this.sendAll(run)
  }

  /** Resolves once all runs are sent. */
  async end(): Promise<void> {
    await this.sending
  }

  acknowledged(rows: number): void {
    this.ahead -= rows
    this.onAcknowledged()
  }

  private async sendAll({ rows, octets }: Run): Promise<void> {
    const skipped = Math.min(this.left, rows.count)
    this.left -= skipped
    for (let at = skipped; at < rows.count; at += ROWS_AT_ONCE) {
      while (this.ahead >= ROWS_AHEAD) await new Promise<void>(resolve => (this.onAcknowledged = resolve))
      const end = Math.min(at + ROWS_AT_ONCE, rows.count)
      const piece = rows.piece(at, end)
      const done = this.octets + (end / rows.count) * (octets - this.octets)
      const message: RowsRead = { kind: 'rows', rows: piece, count: end - at, octets: Math.floor(done) }
      this.post(message, [piece.buffer])
      this.ahead += message.count
    }
    this.octets = octets
  }
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

stepAside()
serve(ownThread())
