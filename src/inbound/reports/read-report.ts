/**
 * Unpacks gzip and zip, never to more than so many octets of one mail: a few KB can hold gigabytes of nothing, and a mail
 * many such files.
 *
 * Called in the reading thread for what is attached to a report. Pure. Standards: RFC 1952 (gzip), APPNOTE.TXT (zip).
 * Fails: throws a plain Error that says what is wrong.
 */
import { gunzipSync } from 'node:zlib'
import { Unzip, UnzipInflate } from 'fflate'
import { readDmarcReport } from './dmarc-report.js'
import type { ParsedReport } from '../reading/parser-protocol.js'
import { readTlsReport } from './tls-report.js'

/** Octets of all that is in one mail, unpacked. */
export const MAX_UNPACKED = 10_000_000

/** What a mail may still unpack to; `unpack` takes from it. */
export interface UnpackBudget {
  remaining: number
}

/** A zip in a gzip is seen; deeper is nobody's report. */
const MAX_LAYERS = 2
/** Files in a zip that are looked at. */
const MAX_FILES = 5
/** Compressed octets taken at a time: a thousandfold of it is the most that can come out before it is counted. */
const STEP = 4_096

/** @returns the octets as they are where they are not packed. @throws Error */
export function unpack(octets: Buffer, budget: UnpackBudget = { remaining: MAX_UNPACKED }): Buffer {
  let inner = octets
  for (let layer = 0; layer < MAX_LAYERS; layer += 1) {
    if (!isGzip(inner) && !isZip(inner)) break
    inner = isGzip(inner) ? gunzip(inner, budget.remaining) : unzip(inner, budget.remaining)
    budget.remaining -= inner.length
  }
  if (isGzip(inner) || isZip(inner)) throw new Error('it is packed more than twice')
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
    throw new Error('its gzip is damaged', { cause: error })
  }
}

/** The first file that holds anything; a folder's entry holds nothing. */
function unzip(octets: Buffer, most: number): Buffer {
  const chunks: Uint8Array[] = []
  // What is thrown inside a callback comes back as another error; so a fault is noted and thrown out here.
  const state: { length: number; files: number; isComplete: boolean; fault?: Error } = {
    length: 0,
    files: 0,
    isComplete: false,
  }
  const archive = new Unzip(file => {
    state.files += 1
    if (state.files > MAX_FILES) state.fault ??= new Error('its zip has too many files')
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
  return new Error('its zip is damaged or empty', { cause })
}

function tooLarge(): Error {
  return new Error(`it is larger than ${MAX_UNPACKED / 1_000_000} MB unpacked`)
}

/** RFC 8460 §4.4; a text may begin with a brace as well. */
const TLS_REPORT_NAMES = /"(?:organization-name|date-range|contact-info|report-id|policies)"/

/** @param attachment as attached, packed or not. @param budget of the mail it is in. @throws Error */
export function readReport(attachment: Buffer, budget?: UnpackBudget): ParsedReport[] {
  const octets = unpack(attachment, budget)
  const beginning = octets
    .toString('latin1', 0, 2_000)
    .replace(/^\xef\xbb\xbf/, '')
    .trimStart()
  if (beginning.startsWith('{') && TLS_REPORT_NAMES.test(beginning))
    return readTlsReport(octets.toString('utf8'))
  if (beginning.startsWith('<') && /<(?:\w{1,20}:)?feedback[\s>]/.test(beginning))
    return [readDmarcReport(octets)]
  return []
}
