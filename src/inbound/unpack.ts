/**
 * Unpacks gzip and zip, never to more than so many octets: a report of a few KB can hold gigabytes of nothing.
 *
 * Called in the reading thread for what is attached to a report. Pure. Standards: RFC 1952 (gzip), APPNOTE.TXT (zip).
 * Fails: throws a plain Error that says what is wrong.
 */
import { gunzipSync } from 'node:zlib'
import { Unzip, UnzipInflate } from 'fflate'

/** Octets of one report, unpacked. */
export const MOST_UNPACKED = 10_000_000
/** A zip in a gzip is seen; deeper is nobody's report. */
const MOST_LAYERS = 2
/** Files in a zip that are looked at. */
const MOST_FILES = 5
/** Compressed octets taken at a time: a thousandfold of it is the most that can come out before it is counted. */
const STEP = 4_096

/** @returns the octets as they are where they are not packed. @throws Error */
export function unpack(octets: Buffer, most = MOST_UNPACKED): Buffer {
  let inner = octets
  for (let layer = 0; layer < MOST_LAYERS; layer += 1) {
    if (isGzip(inner)) inner = gunzip(inner, most)
    else if (isZip(inner)) inner = unzip(inner, most)
    else break
  }
  if (isGzip(inner) || isZip(inner)) throw new Error('it is packed more than twice')
  if (inner.length > most) throw tooLarge(most)
  return inner
}

function isGzip(octets: Buffer): boolean {
  return octets[0] === 0x1f && octets[1] === 0x8b
}

function isZip(octets: Buffer): boolean {
  return octets.subarray(0, 4).equals(Buffer.from('PK\x03\x04', 'latin1'))
}

function gunzip(octets: Buffer, most: number): Buffer {
  try {
    return gunzipSync(octets, { maxOutputLength: most })
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(most)
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
    if (state.files > MOST_FILES) state.fault ??= new Error('its zip has too many files')
    if (state.length > 0 || state.fault) return
    file.ondata = (error: Error | null, chunk, isFinal) => {
      if (error) state.fault ??= damagedZip(error)
      if (state.fault) return
      state.length += chunk.length
      if (state.length > most) state.fault = tooLarge(most)
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

function tooLarge(most: number): Error {
  return new Error(`it is larger than ${Math.round(most / 1_000_000)} MB unpacked`)
}
