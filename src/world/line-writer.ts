/**
 * Buffers log lines for a file descriptor and writes them in the thread pool, so that logging costs the caller no system call.
 *
 * A slow reader, such as a journal, blocks nobody. The buffer is bounded; lines beyond it, and lines that cannot be written (closed
 * pipe, full disk), are dropped and counted. Never throws.
 */
import { write, writeSync } from 'node:fs'

/** Lines within this time share a write; a write costs as much as many lines. */
const GATHER_MS = 50
const RETRY_MS = 10
const MAX_BUFFERED = 4 * 1_024 * 1_024
/** Attempts of the final write at process exit if the reader is slow. */
const FINAL_TRIES = 200

/** Like `fs.write`, starting at an offset. */
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
  private current: { readonly octets: Buffer; written: number } | undefined
  private isInPool = false
  private whenIdle: (() => void)[] = []

  constructor(fd: number, writeSome: WriteSome = writeToFile) {
    this.fd = fd
    this.writeSome = writeSome
  }

  /** @param line without line break @returns false if dropped */
  add(line: string): boolean {
    if (this.held + line.length > MAX_BUFFERED) {
      this.dropped += 1
      return false
    }
    this.waiting.push(line)
    this.held += line.length + 1
    if (this.current === undefined && this.timer === undefined) this.begin(GATHER_MS)
    return true
  }

  takeDropped(): number {
    const { dropped } = this
    this.dropped = 0
    return dropped
  }

  get hasRoom(): boolean {
    return this.held < MAX_BUFFERED / 2
  }

  /** Resolves once all lines are written or dropped. */
  flush(): Promise<void> {
    if (this.current === undefined && this.waiting.length === 0) return Promise.resolve()
    return new Promise(resolve => {
      this.whenIdle.push(resolve)
      if (this.current === undefined) this.writeWaiting()
    })
  }

  /** Synchronously writes the rest. Call it on process exit. */
  finish(): void {
    clearTimeout(this.timer)
    const { current } = this
    // The thread pool finishes its write; repeating it would duplicate lines.
    const rest = current && !this.isInPool ? [current.octets.subarray(current.written)] : []
    this.current = undefined
    this.writeAll(Buffer.concat([...rest, this.take()]))
  }

  private begin(delayMs: number): void {
    this.timer = setTimeout(() => {
      this.timer = undefined
      if (this.current === undefined) this.writeWaiting()
      else this.continueWrite()
    }, delayMs)
    // `finish` writes the rest at exit.
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
      for (const resolve of this.whenIdle.splice(0)) resolve()
      return
    }
    this.current = { octets: this.take(), written: 0 }
    this.continueWrite()
  }

  private continueWrite(): void {
    const { current } = this
    if (current === undefined) return
    this.isInPool = true
    this.writeSome(this.fd, current.octets, current.written, (error, written) => {
      this.isInPool = false
      if (this.current !== current) return // `finish` was called
      if (error?.code === 'EAGAIN') {
        this.begin(RETRY_MS)
        return
      }
      if (error === null) current.written += written
      else this.dropped += 1
      if (error === null && current.written < current.octets.length) {
        this.continueWrite()
        return
      }
      this.current = undefined
      // Someone is flushing, or enough lines have arrived.
      if (this.whenIdle.length > 0 || this.held > 16_384) this.writeWaiting()
      else if (this.waiting.length > 0) this.begin(GATHER_MS)
    })
  }

  private writeAll(octets: Buffer): void {
    let [written, tries] = [0, 0]
    while (written < octets.length && tries < FINAL_TRIES) {
      try {
        written += writeSync(this.fd, octets, written)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
        tries += 1
        // Blocking is fine: the process is exiting.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
      }
    }
  }
}
