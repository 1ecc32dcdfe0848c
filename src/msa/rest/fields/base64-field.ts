/**
 * Decodes base64 in the forms clients write: either alphabet, padded or not, with or without line breaks.
 *
 * Called by `attachment-fields.ts`. Long text is decoded in pieces, yielding to the event loop. Standards: RFC 4648 §4, §5
 * (base64, base64url), RFC 2045 §6.8 (lines). Fails: AppError validation_error with the field's path.
 */
import type { AppError } from '../../../core/errors.js'
import { nextTurn } from '../../../world/time/clock.js'
import { invalidField } from './field-fault.js'

/** Characters decoded before yielding: a few milliseconds. */
const AT_ONCE = 262_144

/** Ignores whitespace and missing padding, and rejects everything else, which Node's decoder would silently skip. */
export function decodeBase64(text: string, path: string): Buffer {
  const plain = decodePlain(text)
  if (plain) return plain
  const compact = /\s/.test(text) ? text.replace(/\s+/g, '') : text
  const isPadded = compact.endsWith('=')
  const digits = isPadded ? compact.replace(/={1,2}$/, '') : compact
  if (/^data:/i.test(text))
    throw invalidField(path, `${path} is a data: URL; send only the part after the comma`)
  // A leftover digit or incomplete padding means the text was truncated.
  const isWhole = isPadded ? compact.length % 4 === 0 : digits.length % 4 !== 1
  if (!isWhole || !/^[A-Za-z0-9+/_-]*$/.test(digits)) throw notBase64(path)
  return Buffer.from(digits, 'base64')
}

/**
 * Fast path for unbroken base64, without a regular expression over millions of characters: the decoder skips invalid characters, so
 * if the output has as many octets as the digits encode, all of them were digits.
 */
function decodePlain(text: string): Buffer | undefined {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0
  const digits = text.length - padding
  if (digits % 4 === 1 || (padding > 0 && text.length % 4 !== 0)) return undefined
  // The decoder would read only the low bits of a wider character.
  if (Buffer.byteLength(text) !== text.length) return undefined
  const octets = Buffer.from(text, 'base64')
  return octets.length === Math.floor((digits * 3) / 4) ? octets : undefined
}

/** Whether to use `decodeLongBase64`. */
export function isLongBase64(text: string): boolean {
  return text.length > AT_ONCE
}

/** Same result and errors as `decodeBase64`. @throws AppError validation_error */
export async function decodeLongBase64(text: string, path: string): Promise<Buffer> {
  const octets = Buffer.allocUnsafe(Math.ceil((text.length * 3) / 4))
  let length = 0
  let waiting = ''
  for (let from = 0; from < text.length; from += AT_ONCE) {
    const read = decodeWhole(waiting + text.slice(from, from + AT_ONCE), path)
    waiting = read.rest
    length += read.octets.copy(octets, length)
    await nextTurn()
  }
  length += decodeBase64(waiting, path).copy(octets, length)
  return octets.subarray(0, length)
}

/** Decodes all whole groups but the last, which may be padded only if nothing follows it. */
function decodeWhole(text: string, path: string): { readonly octets: Buffer; readonly rest: string } {
  const end = Math.max(0, Math.floor(text.length / 4) - 1) * 4
  const piece = text.slice(0, end)
  const isCompact = !piece.includes('\n') && !piece.includes(' ')
  const octets = isCompact && !piece.includes('=') ? decodePlain(piece) : undefined
  if (octets) return { octets, rest: text.slice(end) }
  const compact = text.replace(/\s+/g, '')
  if (compact.length < text.length) return decodeWhole(compact, path)
  if (piece.includes('=')) throw notBase64(path)
  return { octets: decodeBase64(piece, path), rest: text.slice(end) }
}

function notBase64(path: string): AppError {
  return invalidField(path, `${path} is not base64`)
}
