/** Digest of a body as canonical JSON, independent of the order of fields. Called by `idempotency.ts`. */
import { createHash, type Hash } from 'node:crypto'

/** Characters hashed at once, and the longest text serialized in one piece. */
const PIECE = 65_536

/** @param value parsed JSON; undefined if the request has no body @returns SHA-256, base64url */
export function bodyDigest(value: unknown): string {
  const writer = new CanonicalWriter()
  writer.write(value)
  return writer.digest()
}

class CanonicalWriter {
  private readonly hash: Hash = createHash('sha256')
  private text = ''

  /** The parser has limited the depth. */
  write(value: unknown): void {
    if (typeof value === 'string' && value.length > PIECE)
      // Not JSON, but just as unambiguous.
      for (let from = 0; from < value.length; from += PIECE)
        this.add(`+${JSON.stringify(value.slice(from, from + PIECE))}`)
    else if (Array.isArray(value)) {
      this.add('[')
      for (const entry of value) {
        this.write(entry)
        this.add(',')
      }
      this.add(']')
    } else if (typeof value === 'object' && value !== null) {
      this.add('{')
      for (const name of Object.keys(value).sort()) {
        this.add(`${JSON.stringify(name)}:`)
        this.write((value as Record<string, unknown>)[name])
        this.add(',')
      }
      this.add('}')
    } else if (value !== undefined) this.add(JSON.stringify(value))
  }

  digest(): string {
    return this.hash.update(this.text).digest('base64url')
  }

  private add(text: string): void {
    this.text += text
    if (this.text.length < PIECE) return
    this.hash.update(this.text)
    this.text = ''
  }
}
