/**
 * Reads the rows of an import in a separate thread, feeding it the parts stored in the database.
 *
 * Called by the importer, one call at a time. Holds a few thousand rows, and the thread two runs, whatever the file's size.
 * Fails: ImportFault if the file cannot be read further; ReaderEnded if the thread exits, e.g. for lack of memory.
 */
import type { SpawnThread, Thread } from '../../../world/threads.js'
import type { Column, ImportOptions } from '../import.js'
import { decodeRows } from './encoded-rows.js'
import type { ReadRow } from './read-row.js'

/** Startup parameters of the thread. */
export interface ReaderOptions extends Pick<
  ImportOptions,
  'columns' | 'hasHeading' | 'order' | 'everyRow' | 'types' | 'rules' | 'declared'
> {
  /** Only finds the types of columns: answers with them instead of rows. */
  readonly isScan: boolean
  readonly charset: string
  /** Rows already processed: read but not sent. */
  readonly skip: number
}

/** To the thread: a part of the file, its end, or acknowledgement of rows received. */
export type ReaderTask =
  | { readonly octets: Uint8Array }
  | { readonly isEnd: true }
  | { readonly rowsTaken: number }

export interface RowsRead {
  readonly kind: 'rows'
  /** In processing order, as `EncodedRows` encodes them. */
  readonly rows: Uint8Array
  readonly count: number
  /** File position after these rows, octets. */
  readonly octets: number
}

export type ReaderAnswer =
  | RowsRead
  /** A part was read completely. */
  | { readonly kind: 'taken' }
  | { readonly kind: 'end' }
  /** Of a scan, before its end: the file's columns with what was found. */
  | { readonly kind: 'columns'; readonly columns: readonly Column[] }
  /** The file cannot be read further; message for the user. */
  | { readonly kind: 'fault'; readonly message: string }

/** The file is invalid; message for the user. */
export class ImportFault extends Error {
  override readonly name = 'ImportFault'
}

/** The thread exited before the end of the file. */
export class ReaderEnded extends Error {
  override readonly name = 'ReaderEnded'
}

/** Parts sent ahead; the thread reads one while the next is on its way. */
const PARTS_AHEAD = 2
/** Holds a few parts; runs and seen addresses are stored outside the heap. */
const HEAP_MEGABYTES = 128

const PROGRAM = new URL('./import-reader-main.js', import.meta.url)

export class ImportReader {
  private readonly thread: Thread
  private readonly findPart: (part: number) => Promise<Uint8Array | undefined>
  /** Unparsed: rows are parsed on demand, since long-lived objects burden the garbage collector. */
  private readonly unread: RowsRead[] = []
  private rows: ReadRow[] = []
  /** Total number of rows buffered. */
  private waiting = 0
  private nextPart = 0
  private partsInHand = 0
  private handedOver = 0
  private done = 0
  private isHandedOver = false
  private answers = 0
  private found: readonly Column[] | undefined
  private end: 'read' | Error | undefined
  private wake: () => void = () => {}

  /** @param findPart returns a part of the file, from 0; undefined past its end */
  constructor(
    spawn: SpawnThread,
    options: ReaderOptions,
    findPart: (part: number) => Promise<Uint8Array | undefined>,
  ) {
    this.findPart = findPart
    this.thread = spawn(PROGRAM, {
      options,
      heapMegabytes: HEAP_MEGABYTES,
      onMessage: message => this.take(message as ReaderAnswer),
      onEnd: ({ exitCode, fault }) => {
        this.end ??= new ReaderEnded(fault?.message ?? `exit code ${exitCode}`)
        this.answers += 1
        this.wake()
      },
    })
  }

  /** Octets sent to the thread. */
  get octetsHandedOver(): number {
    return this.handedOver
  }

  /** File position of the rows returned so far, octets. */
  get octetsRead(): number {
    return this.done
  }

  /** The next rows in processing order. @param limit maximum @throws Error, ImportFault after the last readable row */
  async next(limit: number): Promise<{ readonly rows: readonly ReadRow[]; readonly isEnd: boolean }> {
    // The thread reads on while the caller processes these rows.
    await this.handOver()
    while (this.waiting < limit && this.end === undefined) {
      const { answers } = this
      await this.handOver()
      // Answers that arrived meanwhile may allow sending more.
      if (answers === this.answers) await this.news()
    }
    if (this.waiting === 0 && this.end instanceof Error) throw this.end
    const rows = this.takeRows(limit)
    // A fault is not the end of the file.
    return { rows, isEnd: this.end === 'read' && this.waiting === 0 }
  }

  /** Of a scan: the columns with what was found in their cells. @throws Error, ReaderEnded */
  async columns(): Promise<readonly Column[]> {
    await this.next(1)
    if (!this.found) throw new Error('the scan answered without columns')
    return this.found
  }

  private takeRows(limit: number): readonly ReadRow[] {
    while (this.rows.length < limit) {
      const next = this.unread.shift()
      if (!next) break
      this.thread.post({ rowsTaken: next.count } satisfies ReaderTask)
      this.done = next.octets
      for (const row of decodeRows(next.rows)) this.rows.push(row)
    }
    const rows = this.rows.splice(0, limit)
    this.waiting -= rows.length
    return rows
  }

  async close(): Promise<void> {
    this.end ??= new Error('the reader was closed')
    await this.thread.terminate()
  }

  private news(): Promise<void> {
    return new Promise(resolve => (this.wake = resolve))
  }

  private async handOver(): Promise<void> {
    while (!this.isHandedOver && this.partsInHand < PARTS_AHEAD) {
      const octets = await this.findPart(this.nextPart)
      this.nextPart += 1
      this.isHandedOver = octets === undefined
      if (octets) {
        this.partsInHand += 1
        this.handedOver += octets.length
      }
      this.thread.post((octets ? { octets } : { isEnd: true }) satisfies ReaderTask)
    }
  }

  private take(answer: ReaderAnswer): void {
    if (answer.kind === 'rows') {
      this.unread.push(answer)
      this.waiting += answer.count
    } else if (answer.kind === 'columns') this.found = answer.columns
    else if (answer.kind === 'taken') this.partsInHand -= 1
    else if (answer.kind === 'end') this.end ??= 'read'
    else this.end ??= new ImportFault(answer.message)
    this.answers += 1
    this.wake()
  }
}
