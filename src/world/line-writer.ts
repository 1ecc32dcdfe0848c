/**
 * Lines on their way to a file descriptor, gathered for some milliseconds, so that a line costs its caller no system call.
 *
 * Used by `log.ts`. Writing is left to a thread of the pool: a reader that is slow, as a journal can be, holds nobody up. What
 * waits is bounded; beyond that lines are dropped and counted, since no log is worth a server that stands still. Fails: never;
 * what cannot be written at all (nobody reads any more, the disk is full) is dropped and counted likewise.
 */
import { write, writeSync } from 'node:fs'

/** Lines that come within it are one write, which wakes a thread and then the event loop: as much as many lines. */
const GATHER_MS = 50
const TRY_AGAIN_MS = 10
/** Characters that wait at most. */
const MOST_HELD = 4 * 1_024 * 1_024
/** Tries of the last write, when the process ends and the reader is slow. */
const LAST_TRIES = 200

/** As `fs.write`, of the octets from an offset on. */
export type WriteSome = (
  fd: number,
  octets: Buffer,
  offset: number,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void

const writeToFile: WriteSome = (fd, octets, offset, done) => write(fd, octets, offset, done)

export class LineWriter {
  private readonly fd: number
  private readonly writeSome: WriteSome
  private waiting: string[] = []
  private held = 0
  private dropped = 0
  private timer: NodeJS.Timeout | undefined
  /** What the pool is writing, from `written` on. */
  private underWay: { readonly octets: Buffer; written: number } | undefined
  private isInPool = false
  private whenIdle: (() => void)[] = []

  constructor(fd: number, writeSome: WriteSome = writeToFile) {
    this.fd = fd
    this.writeSome = writeSome
  }

  /** @param line without its end @returns false where it was dropped */
  add(line: string): boolean {
    if (this.held + line.length > MOST_HELD) {
      this.dropped += 1
      return false
    }
    this.waiting.push(line)
    this.held += line.length + 1
    if (this.underWay === undefined && this.timer === undefined) this.begin(GATHER_MS)
    return true
  }

  /** How many lines were dropped since it was last asked. */
  takeDropped(): number {
    const { dropped } = this
    this.dropped = 0
    return dropped
  }

  get hasRoom(): boolean {
    return this.held < MOST_HELD / 2
  }

  /** Resolves once all that was added is written or dropped. */
  flush(): Promise<void> {
    if (this.underWay === undefined && this.waiting.length === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.whenIdle.push(resolve)
      if (this.underWay === undefined) this.writeWaiting()
    })
  }

  /** At the end of the process, when nothing asynchronous comes to its end any more. */
  finish(): void {
    clearTimeout(this.timer)
    const { underWay } = this
    // What the pool has in its hands it brings to its end by itself; written again it would stand there twice.
    const rest = underWay && !this.isInPool ? [underWay.octets.subarray(underWay.written)] : []
    this.underWay = undefined
    this.writeAll(Buffer.concat([...rest, this.take()]))
  }

  private begin(delayMs: number): void {
    this.timer = setTimeout(() => {
      this.timer = undefined
      if (this.underWay === undefined) this.writeWaiting()
      else this.writeOn()
    }, delayMs)
    // The end of the process writes what is left.
    this.timer.unref()
  }

  private take(): Buffer {
    const octets = this.waiting.length === 0 ? Buffer.alloc(0) : Buffer.from(`${this.waiting.join('\n')}\n`)
    this.waiting = []
    this.held = 0
    return octets
  }

  private writeWaiting(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    if (this.waiting.length === 0) {
      for (const tell of this.whenIdle.splice(0)) tell()
      return
    }
    this.underWay = { octets: this.take(), written: 0 }
    this.writeOn()
  }

  private writeOn(): void {
    const { underWay } = this
    if (underWay === undefined) return
    this.isInPool = true
    this.writeSome(this.fd, underWay.octets, underWay.written, (error, written) => {
      this.isInPool = false
      if (this.underWay !== underWay) return // the process has ended meanwhile
      if (error?.code === 'EAGAIN') {
        this.begin(TRY_AGAIN_MS)
        return
      }
      if (error === null) underWay.written += written
      else this.dropped += 1
      if (error === null && underWay.written < underWay.octets.length) {
        this.writeOn()
        return
      }
      this.underWay = undefined
      // Somebody waits, or enough has come meanwhile to be worth a write.
      if (this.whenIdle.length > 0 || this.held > 16_384) this.writeWaiting()
      else if (this.waiting.length > 0) this.begin(GATHER_MS)
    })
  }

  private writeAll(octets: Buffer): void {
    let [written, tries] = [0, 0]
    while (written < octets.length && tries < LAST_TRIES) {
      try {
        written += writeSync(this.fd, octets, written)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
        tries += 1
        // Nothing else is left to be done by this process.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
      }
    }
  }
}
