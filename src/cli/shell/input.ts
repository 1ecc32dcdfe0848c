/** A file that a command reads: `-` is standard input. Fails: as the stream does, when it is read. */
import { createReadStream } from 'node:fs'

export function openInput(file: string): AsyncIterable<Buffer> {
  return file === '-' ? process.stdin : createReadStream(file)
}
