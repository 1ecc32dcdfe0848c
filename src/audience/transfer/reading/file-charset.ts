/**
 * Detects the charset of a file as it arrives: byte order mark, then the declared charset, then content. A mark overrides labels
 * (Encoding Standard §6). Undeclared text that is not valid UTF-8 is read as windows-1252, as spreadsheets save it; UTF-16 without a mark
 * is recognized by its NULs.
 *
 * Used for files of contacts and of suppressions. Pure.
 */
import { TextDecoder } from 'node:util'

const UTF8 = /^(?:utf-?8|(?:us-)?ascii)?$/i
/** Octets searched for NULs. */
const LOOKED_AT = 1_024

export class FileCharset {
  private marked: string | undefined
  private looksLike: string | undefined
  private hasBegun = false
  /** Undefined once the content is not valid UTF-8. */
  private decoder: TextDecoder | undefined = new TextDecoder('utf-8', { fatal: true })

  take(octets: Buffer): void {
    if (octets.length === 0) return
    if (!this.hasBegun) {
      this.hasBegun = true
      this.marked = byMark(octets)
      this.looksLike = byNuls(octets)
    }
    this.decode(octets)
  }

  /** By the octets so far, the last character of which may be incomplete. */
  get guess(): string {
    return this.marked ?? this.looksLike ?? (this.decoder ? 'utf-8' : 'windows-1252')
  }

  /** Call after all octets. @param declared charset known to `streamDecoder`, or empty */
  charsetFor(declared = ''): string {
    this.decode()
    if (this.marked !== undefined) return this.marked
    if (!UTF8.test(declared.trim())) return declared.trim().toLowerCase()
    return this.guess
  }

  private decode(octets?: Buffer): void {
    try {
      this.decoder?.decode(octets, { stream: octets !== undefined })
    } catch {
      this.decoder = undefined
    }
  }
}

function byMark([first, second, third]: Buffer): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8'
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : undefined
}

/** In UTF-16, every other octet of ASCII text is NUL. */
function byNuls(octets: Buffer): string | undefined {
  const looked = octets.subarray(0, LOOKED_AT)
  const nuls = [0, 0]
  for (const [at, octet] of looked.entries()) if (octet === 0) nuls[at % 2] = (nuls[at % 2] ?? 0) + 1
  const [even = 0, odd = 0] = nuls
  if (Math.max(even, odd) < looked.length / 4) return undefined
  return odd > even ? 'utf-16le' : 'utf-16be'
}
