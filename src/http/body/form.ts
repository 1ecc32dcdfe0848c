/**
 * The parts of a form with a file in it, one after the other, while they come in.
 *
 * Called by `upload.ts`. Each part is read to its end before the next one begins; what its reader leaves is passed over. Pure.
 * Standards: RFC 7578 (multipart/form-data), RFC 2046 §5.1.1 (boundary delimiters).
 * Fails: AppError validation_error where the body is no such form.
 */
import { given } from '../../core/given.js'
import { parameter, readMediaType } from '../../mail/mime/media-type.js'
import { invalid } from './body.js'

export interface FormPart {
  readonly name: string
  readonly fileName?: string
  /** As the part declares it. */
  readonly charset?: string
  readonly pieces: AsyncIterable<Buffer>
}

const MOST_HEADER = 8_192
const MOST_PARTS = 50

export async function* readForm(octets: AsyncIterable<Buffer>, boundary: string): AsyncGenerator<FormPart> {
  const reader = new FormReader(octets, boundary)
  await reader.passPart()
  for (let parts = 0; await reader.hasPart(); parts += 1) {
    if (parts === MOST_PARTS) throw invalid(`the form has more than ${MOST_PARTS} parts`)
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
  /** Of what has come, what nobody has taken yet; the line end before the first delimiter may be missing. */
  private held: Buffer = Buffer.from('\r\n')
  private isInPart = true

  constructor(octets: AsyncIterable<Buffer>, boundary: string) {
    this.source = octets[Symbol.asyncIterator]()
    this.delimiter = Buffer.from(`\r\n--${boundary}`)
  }

  /** Up to the next delimiter, which is taken as well. */
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

  /** After a delimiter. @returns false where it was the last one */
  async hasPart(): Promise<boolean> {
    while (this.held.length < 2) await this.more()
    return this.held.subarray(0, 2).toString('latin1') !== '--'
  }

  async header(): Promise<string> {
    for (;;) {
      const at = this.held.indexOf('\r\n\r\n')
      if (at > MOST_HEADER || (at < 0 && this.held.length > MOST_HEADER))
        throw invalid('the header of a part of the form is too long')
      if (at >= 0) {
        const header = this.held.subarray(0, at).toString('utf8')
        // The line end before a delimiter belongs to it, even where the part is empty.
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
    // An empty part: the blank line is the delimiter's own line end.
    if (!this.held.subarray(0, this.delimiter.length).equals(this.delimiter))
      this.held = this.held.subarray(2)
  }

  private async more(): Promise<void> {
    const next: IteratorResult<Buffer, unknown> = await this.source.next()
    if (next.done === true) throw invalid('the form is cut short')
    this.held = this.held.length === 0 ? next.value : Buffer.concat([this.held, next.value])
  }
}
