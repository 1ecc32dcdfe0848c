/**
 * A file of an import as rows: read in a thread of its own, which is fed with the parts that lie in the database.
 *
 * Called by the importer, one call at a time. Holds a few thousand rows, and its thread those of two runs, whatever the size of the file.
 * Fails: ImportFault where the file cannot be read any further; ReaderEnded where the thread has ended, for want of memory say.
 */
import type { SpawnThread, Thread } from '../../../world/threads.js'
import type { ReaderAnswer, ReaderOptions, ReaderTask, ReadRow, RowsRead } from './import-reader-protocol.js'
import { readRowTexts } from './row-text.js'

/** What is wrong with the file itself, in words for its sender. */
export class ImportFault extends Error {
  override readonly name = 'ImportFault'
}

/** The thread ended before the file did. */
export class ReaderEnded extends Error {
  override readonly name = 'ReaderEnded'
}

/** Parts that the thread has in hand; it reads one while the next is on its way. */
const PARTS_AHEAD = 2
/** For what is made of a few parts; texts of runs, and the addresses that it has seen, lie elsewhere. */
const HEAP_MEGABYTES = 128

const PROGRAM = new URL('./import-reader-main.js', import.meta.url)

export class ImportReader {
  private readonly thread: Thread
  private readonly findPart: (part: number) => Promise<Uint8Array | undefined>
  /** As they came: made to rows when they are wanted, since objects that live for long are dear to the garbage collector. */
  private readonly unread: RowsRead[] = []
  private rows: ReadRow[] = []
  /** Of both. */
  private waiting = 0
  private nextPart = 0
  private partsInHand = 0
  private handedOver = 0
  private done = 0
  private isHandedOver = false
  private answers = 0
  private end: 'read' | Error | undefined
  private wake: () => void = () => {}

  /** @param findPart of the file, from 0; undefined past its end */
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

  /** Octets of the file that were handed to the thread. */
  get octetsHandedOver(): number {
    return this.handedOver
  }

  /** Octets that the rows are of which were asked for so far. */
  get octetsRead(): number {
    return this.done
  }

  /** The next rows, in the order in which they are done. @param limit at most @throws Error, ImportFault after the last row that was read */
  async next(limit: number): Promise<{ readonly rows: readonly ReadRow[]; readonly isEnd: boolean }> {
    // Read while whoever asks is busy with these.
    await this.handOver()
    while (this.waiting < limit && this.end === undefined) {
      const { answers } = this
      await this.handOver()
      // What was answered meanwhile may let more be handed over.
      if (answers === this.answers) await this.news()
    }
    if (this.waiting === 0 && this.end instanceof Error) throw this.end
    const rows = this.takeRows(limit)
    // What cannot be read any further has not come to its end.
    return { rows, isEnd: this.end === 'read' && this.waiting === 0 }
  }

  private takeRows(limit: number): readonly ReadRow[] {
    while (this.rows.length < limit) {
      const next = this.unread.shift()
      if (!next) break
      this.thread.post({ rowsTaken: next.count } satisfies ReaderTask)
      this.done = next.octets
      for (const row of readRowTexts(next.rows)) this.rows.push(row)
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
    } else if (answer.kind === 'taken') this.partsInHand -= 1
    else if (answer.kind === 'end') this.end ??= 'read'
    else this.end ??= new ImportFault(answer.message)
    this.answers += 1
    this.wake()
  }
}
