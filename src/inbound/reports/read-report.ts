/**
 * Unpacks and parses an attached report; its kind is detected from its first characters, not from the file name.
 *
 * A few KB can unpack to gigabytes, and a mail can have many files, so unpacking is bounded per mail. Attachments that
 * are not reports return nothing. Standards: RFC 1952 (gzip), APPNOTE.TXT (zip). Throws an Error that says what is
 * wrong with the report.
 */
import { isUtf8 } from 'node:buffer'
import { TextDecoder } from 'node:util'
import { gunzipSync } from 'node:zlib'
import { Unzip, UnzipInflate } from 'fflate'
import { readDmarcReport } from './dmarc-report.js'
import type { ParsedReport } from '../parser-protocol.js'
import { decodeCharset } from '../../mail/mime/charset.js'
import { readTlsReport } from './tls-report.js'

/** Bytes that one mail may unpack to. */
export const MAX_UNPACKED = 10_000_000

/** Octets that a mail may still unpack to; `unpack` subtracts from it. */
export interface UnpackBudget {
  remaining: number
}

/** A zip in a gzip occurs. */
const MAX_LAYERS = 2
const MAX_FILES = 5
/** Compressed bytes per step: at most a thousand times as much is unpacked before it is counted. */
const STEP = 4_096

/** @returns the input if it is not packed. @throws Error */
export function unpack(octets: Buffer, budget: UnpackBudget = { remaining: MAX_UNPACKED }): Buffer {
  let inner = octets
  for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
    if (!isGzip(inner) && !isZip(inner)) break
    inner = isGzip(inner) ? gunzip(inner, budget.remaining) : unzip(inner, budget.remaining)
    budget.remaining -= inner.length
  }
  if (isGzip(inner) || isZip(inner)) throw new Error('packed more than twice')
  return inner
}

function isGzip(octets: Buffer): boolean {
  return octets[0] === 0x1f && octets[1] === 0x8b
}

function isZip(octets: Buffer): boolean {
  return octets.subarray(0, 4).equals(Buffer.from('PK\x03\x04', 'latin1'))
}

function gunzip(octets: Buffer, most: number): Buffer {
  if (most === 0) throw tooLarge()
  try {
    return gunzipSync(octets, { maxOutputLength: most })
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge()
    throw new Error('malformed gzip', { cause: error })
  }
}

/** The first non-empty file; directory entries are empty. */
function unzip(octets: Buffer, most: number): Buffer {
  const chunks: Uint8Array[] = []
  // fflate wraps exceptions thrown in callbacks, so faults are stored and thrown below.
  const state: { length: number; files: number; isComplete: boolean; fault?: Error } = {
    length: 0,
    files: 0,
    isComplete: false,
  }
  const archive = new Unzip(file => {
    state.files += 1
    if (state.files > MAX_FILES) state.fault ??= new Error('zip has too many files')
    if (state.length > 0 || state.fault) return
    file.ondata = (error: Error | null, chunk, isFinal) => {
      if (error) state.fault ??= damagedZip(error)
      if (state.fault) return
      state.length += chunk.length
      if (state.length > most) state.fault = tooLarge()
      chunks.push(chunk)
      state.isComplete = isFinal && state.length > 0
    }
    file.start()
  })
  archive.register(UnzipInflate)
  for (let at = 0; at < octets.length && !state.isComplete && !state.fault; at += STEP)
    push(archive, octets.subarray(at, at + STEP), at + STEP >= octets.length)
  if (state.fault) throw state.fault
  if (!state.isComplete) throw damagedZip()
  return Buffer.concat(chunks)
}

function push(archive: Unzip, piece: Uint8Array, isLast: boolean): void {
  try {
    archive.push(piece, isLast)
  } catch (error) {
    throw damagedZip(error)
  }
}

function damagedZip(cause?: unknown): Error {
  return new Error('malformed or empty zip', { cause })
}

function tooLarge(): Error {
  return new Error(`larger than ${MAX_UNPACKED / 1_000_000} MB unpacked`)
}

/** RFC 8460 §4.4. Plain text may also begin with a brace. */
const TLS_REPORT_NAMES = /"(?:organization-name|date-range|contact-info|report-id|policies)"/

/**
 * @param attachment packed or not
 * @param budget shared by all attachments of the mail
 * @throws Error
 */
export function readReport(attachment: Buffer, budget?: UnpackBudget): ParsedReport[] {
  const text = toText(unpack(attachment, budget))
  const beginning = text.slice(0, 2_000).trimStart()
  if (beginning.startsWith('{') && TLS_REPORT_NAMES.test(beginning)) return readTlsReport(text)
  if (beginning.startsWith('<') && /<(?:\w{1,20}:)?feedback[\s>]/.test(beginning))
    return [readDmarcReport(text)]
  return []
}

/** XML 1.0 §4.3.3; a document that is not UTF-8 has to declare it. */
const DECLARED_ENCODING = /^<\?xml\b[^>]{0,200}?\bencoding\s{0,5}=\s{0,5}["']([\w.-]{1,40})["']/

/**
 * Decodes a report. UTF-16 is known by its byte order mark, or by the zero beside its first character (XML 1.0, appendix F): what a document
 * declares is often wrong, as programs declare UTF-16 and write UTF-8. The mark is removed.
 */
function toText(octets: Buffer): string {
  const [first, second] = octets
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0))
    return decodeAs('utf-16le', octets)
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0))
    return decodeAs('utf-16be', octets)
  if (isUtf8(octets)) return decodeAs('utf-8', octets)
  const [, declared] = DECLARED_ENCODING.exec(octets.toString('latin1', 0, 300)) ?? []
  return decodeCharset(octets, declared)
}

function decodeAs(encoding: string, octets: Buffer): string {
  return new TextDecoder(encoding).decode(octets)
}
