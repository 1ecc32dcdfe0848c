/**
 * Reads JPEG files without decoding them.
 *
 * Standards: ITU-T T.81 Annex B (segments), JFIF 1.02, Exif 2.32 §4.6.4 (orientation), ICC.1:2022 Annex B.4. Pure. @throws ImageFault
 */
import { cutShort, damaged, ImageFault, OctetReader, type ReadImage } from './image.js'

export const JPEG_SIGNATURE = Buffer.from([0xff, 0xd8, 0xff])

const [SOI, EOI, SOS, APP0, APP1, APP2, APP14, APP15, COM, DNL] = [
  0xd8, 0xd9, 0xda, 0xe0, 0xe1, 0xe2, 0xee, 0xef, 0xfe, 0xdc,
] as const
/** Start of frame: baseline, extended sequential, progressive. Others (lossless, arithmetic) are shown by hardly any mail client. */
const SHOWN_FRAMES = new Set([0xc0, 0xc1, 0xc2])
const TABLES = new Set([0xc4, 0xdb, 0xdd])
const ICC_PROFILE = Buffer.from('ICC_PROFILE\0')
const EXIF = Buffer.from('Exif\0\0')
const JFIF = Buffer.from('JFIF\0')
const ADOBE = Buffer.from('Adobe')
/** Progressive files have about ten; each costs a pass over all pixels. */
const MAX_SCANS = 100

interface Frame {
  readonly width: number
  readonly height: number
}

export function readJpeg(octets: Buffer): ReadImage {
  const reader = new OctetReader(octets, 2)
  const pieces: Buffer[] = []
  const profile: Buffer[] = []
  let jfif = Buffer.alloc(0)
  let orientation = 1
  let frame: Frame | undefined
  let scans = 0
  for (;;) {
    const marker = readMarker(reader)
    if (marker === EOI) break
    const start = reader.at
    const length = reader.take(2).readUInt16BE()
    if (length < 2) throw damaged('a segment has no length')
    const content = reader.take(length - 2)
    const segment = Buffer.concat([Buffer.from([0xff, marker]), octets.subarray(start, reader.at)])
    if (marker === APP0 && content.subarray(0, 5).equals(JFIF) && jfif.length === 0) jfif = segment
    else if (marker === APP1 && content.subarray(0, 6).equals(EXIF)) orientation = orientationOf(content)
    else if (marker === APP2 && content.subarray(0, 12).equals(ICC_PROFILE)) profile.push(segment)
    else if (marker === APP14 && content.subarray(0, 5).equals(ADOBE)) pieces.push(segment)
    else if ((marker >= APP0 && marker <= APP15) || marker === COM) continue
    else if (TABLES.has(marker)) pieces.push(segment)
    else if (isFrame(marker)) {
      if (frame) throw damaged('it has two headers')
      frame = readFrame(marker, content)
      pieces.push(segment)
    } else if (marker === SOS) {
      if (!frame) throw damaged('it has no header')
      if (++scans > MAX_SCANS) throw new ImageFault(`has more than ${MAX_SCANS} passes`)
      pieces.push(segment, takeScan(reader))
    } else if (marker === DNL) throw new ImageFault('does not say its height at the beginning')
    else throw damaged(`it has the unknown segment ${marker.toString(16)}`)
  }
  if (!frame || scans === 0) throw damaged('it has no pixels')
  const isTurned = orientation >= 5
  const [head, colours] = [Buffer.from([0xff, SOI]), Buffer.concat(profile)]
  const turn = orientation === 1 ? Buffer.alloc(0) : orientationSegment(orientation)
  const clean = Buffer.concat([head, jfif, turn, colours, ...pieces, Buffer.from([0xff, EOI])])
  return {
    kind: 'jpeg',
    width: isTurned ? frame.height : frame.width,
    height: isTurned ? frame.width : frame.height,
    isAnimated: false,
    clean,
    decodable: clean,
    colours,
  }
}

/** SOF0 to SOF15 without DHT, JPG and DAC. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
}

function readMarker(reader: OctetReader): number {
  if (reader.uint8() !== 0xff) throw damaged('a segment does not begin with a marker')
  let marker = reader.uint8()
  // Markers may be padded.
  while (marker === 0xff) marker = reader.uint8()
  return marker
}

function readFrame(marker: number, content: Buffer): Frame {
  if (!SHOWN_FRAMES.has(marker))
    throw new ImageFault('uses a kind of JPEG that mail clients do not show; save it as a usual JPEG')
  if (content.length < 6) throw damaged('its header is too short')
  const components = content.readUInt8(5)
  if (components === 4)
    throw new ImageFault(
      'has colours for printing (CMYK), which mail clients show wrong or not at all; save it in RGB',
    )
  if (components !== 1 && components !== 3) throw damaged('it has an impossible number of colours')
  if (content.readUInt8(0) !== 8) throw new ImageFault('has more than 8 bits a colour; save it with 8')
  return { height: content.readUInt16BE(1), width: content.readUInt16BE(3) }
}

/** Entropy-coded data, up to the next marker. */
function takeScan(reader: OctetReader): Buffer {
  const { octets, at: start } = reader
  for (let at = start; ;) {
    at = octets.indexOf(0xff, at)
    const next = at < 0 ? undefined : octets[at + 1]
    if (next === undefined) throw cutShort()
    const isData = next === 0 || (next >= 0xd0 && next <= 0xd7)
    if (!isData && next !== 0xff) {
      reader.at = at
      return octets.subarray(start, at)
    }
    at += next === 0xff ? 1 : 2
  }
}

const ORIENTATION_TAG = 0x0112

/** @returns 1 (upright) to 8; 1 if it says none */
function orientationOf(exif: Buffer): number {
  const tiff = exif.subarray(EXIF.length)
  if (tiff.length < 8) return 1
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const short = (at: number) =>
    at + 2 > tiff.length ? 0 : isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at)
  const first = isLittle ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4)
  const entries = short(first)
  for (let n = 0; n < entries; n++) {
    const at = first + 2 + 12 * n
    if (at + 12 > tiff.length) return 1
    if (short(at) !== ORIENTATION_TAG) continue
    const value = short(at + 8)
    return value >= 1 && value <= 8 ? value : 1
  }
  return 1
}

/** Exif with nothing but the orientation. */
function orientationSegment(orientation: number): Buffer {
  const tiff = Buffer.alloc(26)
  tiff.write('MM', 0, 'latin1')
  tiff.writeUInt16BE(42, 2)
  tiff.writeUInt32BE(8, 4)
  tiff.writeUInt16BE(1, 8)
  tiff.writeUInt16BE(ORIENTATION_TAG, 10)
  tiff.writeUInt16BE(3, 12)
  tiff.writeUInt32BE(1, 14)
  tiff.writeUInt16BE(orientation, 18)
  const head = Buffer.alloc(4)
  head.writeUInt16BE(0xff00 | APP1, 0)
  head.writeUInt16BE(2 + EXIF.length + tiff.length, 2)
  return Buffer.concat([head, EXIF, tiff])
}
