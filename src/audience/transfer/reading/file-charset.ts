/**
 * Finds out what charset a file is in, while it comes in: by its byte order mark, by what its sender declares, by how it looks.
 *
 * Called when a file is received. What is no UTF-8 and declares nothing is windows-1252, as spreadsheets save it.
 * Standards: Encoding Standard §6 (a byte order mark counts more than a label); UTF-16 without a mark is known by its NULs.
 */
import { TextDecoder } from 'node:util'

const UTF8 = /^(?:utf-?8|(?:us-)?ascii)?$/i
/** Octets that are looked at for NULs. */
const LOOKED_AT = 1_024

export class FileCharset {
  private marked: string | undefined
  private looksLike: string | undefined
  private hasBegun = false
  /** Until something is no UTF-8. */
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

  /** Of all that came. @param declared one that `streamDecoder` knows, or nothing */
  charsetFor(declared = ''): string {
    this.decode()
    if (this.marked !== undefined) return this.marked
    if (!UTF8.test(declared.trim())) return declared.trim().toLowerCase()
    return this.looksLike ?? (this.decoder ? 'utf-8' : 'windows-1252')
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

/** Of UTF-16 that holds mostly ASCII every other octet is NUL. */
function byNuls(octets: Buffer): string | undefined {
  const looked = octets.subarray(0, LOOKED_AT)
  const nuls = [0, 0]
  for (const [at, octet] of looked.entries()) if (octet === 0) nuls[at % 2] = (nuls[at % 2] ?? 0) + 1
  const [even = 0, odd = 0] = nuls
  if (Math.max(even, odd) < looked.length / 4) return undefined
  return odd > even ? 'utf-16le' : 'utf-16be'
}
