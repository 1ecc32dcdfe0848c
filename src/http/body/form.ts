/**
 * Parses a multipart form incrementally, part by part.
 *
 * Called by `upload.ts`. A part ends before the next begins; what its reader left unread is skipped. Pure.
 * Standards: RFC 7578 (multipart/form-data), RFC 2046 §5.1.1 (boundary delimiters).
 * Fails: AppError validation_error if the body is malformed.
 */
import { given } from '../../core/given.js'
import { parameter, readMediaType } from '../../mail/mime/media-type.js'
import { invalid } from './body.js'

export interface FormPart {
  readonly name: string
  readonly fileName?: string
  /** Declared charset. */
  readonly charset?: string
  readonly pieces: AsyncIterable<Buffer>
}

const MAX_HEADER = 8_192
const MAX_PARTS = 50

export async function* readForm(octets: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<FormPart> {
  const reader = new FormReader(octets, boundary)
  await reader.passPart()
  for (let parts = 0; await reader.hasPart(); parts += 1) {
    if (parts === MAX_PARTS) throw invalid(`the form has more than ${MAX_PARTS} parts`)
    const header = await reader.header()
    yield { ...describe(header), pieces: reader.part() }
    await reader.passPart()
  }
}

function describe(header: string): Omit<FormPart, 'pieces'> {
  const field = (name: string) =>
    readMediaType(new RegExp(`^${name}:(.*)$`, 'im').exec(header)?.[1]?.trim() ?? '')
  const disposition = field('Content-Disposition')
  const name = parameter(disposition, 'name')
  if (name === undefined) throw invalid('a part of the form has no name')
  return {
    name,
    ...given({
      fileName: parameter(disposition, 'filename'),
      charset: parameter(field('Content-Type'), 'charset'),
    }),
  }
}

class FormReader {
  private readonly source: AsyncIterator<Buffer>
  private readonly delimiter: Buffer
  /** Data received and not consumed. Starts with a line end, because the first delimiter may lack it. */
  private held: Buffer = Buffer.from('\r\n')
  private isInPart = true

  constructor(octets: AsyncIterable<Buffer>, boundary: string) {
    this.source = octets[Symbol.asyncIterator]()
    this.delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /** Content up to the next delimiter, which is consumed as well. */
  async *part(): AsyncGenerator<Buffer> {
    while (this.isInPart) {
      const at = this.held.indexOf(this.delimiter)
      if (at >= 0) {
        const last = this.held.subarray(0, at)
        this.held = this.held.subarray(at + this.delimiter.length)
        this.isInPart = false
        if (last.length > 0) yield last
        return
      }
      const sure = this.held.length - this.delimiter.length + 1
      if (sure > 0) {
        const piece = this.held.subarray(0, sure)
        this.held = this.held.subarray(sure)
        yield piece
      }
      await this.more()
    }
  }

  async passPart(): Promise<void> {
    const rest = this.part()
    while (!(await rest.next()).done);
  }

  /** Call after a delimiter. @returns false if it was the last */
  async hasPart(): Promise<boolean> {
    while (this.held.length < 2) await this.more()
    return this.held.subarray(0, 2).toString('latin1') !== '--'
  }

  async header(): Promise<string> {
    for (;;) {
      const at = this.held.indexOf('\r\n\r\n')
      if (at > MAX_HEADER || (at < 0 && this.held.length > MAX_HEADER))
        throw invalid('a part of the form has too long a header')
      if (at >= 0) {
        const header = this.held.subarray(0, at).toString('utf8')
        // The line end before a delimiter belongs to the delimiter, even for an empty part.
        this.held = this.held.subarray(at + 2)
        this.isInPart = true
        await this.skipLineEnd()
        return header
      }
      await this.more()
    }
  }

  private async skipLineEnd(): Promise<void> {
    while (this.held.length <= this.delimiter.length) await this.more()
    // Empty part: the blank line is already the delimiter's line end.
    if (!this.held.subarray(0, this.delimiter.length).equals(this.delimiter))
      this.held = this.held.subarray(2)
  }

  private async more(): Promise<void> {
    const next: IteratorResult<Buffer, unknown> = await this.source.next()
    if (next.done === true) throw invalid('the form is truncated')
    this.held = this.held.length === 0 ? next.value : Buffer.concat([this.held, next.value])
  }
}
