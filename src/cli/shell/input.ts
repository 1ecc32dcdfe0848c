/** Opens a file argument; `-` is standard input. Errors are those of the stream. */
import { createReadStream } from 'node:fs'

export function openInput(file: string): AsyncIterable<Buffer> {
  return file === '-' ? process.stdin : createReadStream(file)
}
