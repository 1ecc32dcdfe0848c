/**
 * Reads PNG files and animated ones (APNG) without decoding them.
 *
 * Standard: W3C PNG, third edition §5 (chunks), §11.2 (IHDR), §4.9 (APNG). Pure. @throws ImageFault
 */
import { crc32 } from 'node:zlib'
import { damaged, ImageFault, OctetReader, type ReadImage } from './image.js'

export const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Of the signature and IHDR, which every PNG begins with. */
export const PNG_HEAD_OCTETS = 33

const PIXELS = new Set(['IHDR', 'PLTE', 'tRNS', 'IDAT', 'IEND'])
const COLOURS = new Set(['gAMA', 'cHRM', 'sRGB', 'iCCP', 'cICP', 'sBIT'])
const OTHERS = new Set(['bKGD', 'pHYs', 'acTL', 'fcTL', 'fdAT'])
/** Octets of a colour profile; larger ones are left out, since they are compressed. */
const MAX_PROFILE = 64 * 1_024

export function readPng(octets: Buffer): ReadImage {
  const reader = new OctetReader(octets, PNG_SIGNATURE.length)
  const kept: Record<'clean' | 'decodable' | 'colours', Buffer[]> = {
    clean: [PNG_SIGNATURE],
    decodable: [PNG_SIGNATURE],
    colours: [],
  }
  let [width, height] = [0, 0]
  let isAnimated = false
  let hasPixels = false
  for (let isFirst = true; ; isFirst = false) {
    const start = reader.at
    const length = reader.take(4).readUInt32BE()
    const type = reader.take(4).toString('latin1')
    const content = reader.take(length)
    if (crc32(octets.subarray(start + 4, start + 8 + length)) !== reader.take(4).readUInt32BE())
      throw damaged('a checksum is wrong')
    if (isFirst !== (type === 'IHDR')) throw damaged('it has no header')
    const chunk = octets.subarray(start, reader.at)
    if (type === 'IHDR') {
      if (length !== 13) throw damaged('its header has the wrong length')
      ;[width, height] = [content.readUInt32BE(0), content.readUInt32BE(4)]
    }
    if (type === 'acTL') isAnimated = true
    if (type === 'IDAT') hasPixels = true
    if (isAnimated && type === 'fcTL') checkFrame(content, width, height)
    const isColour = COLOURS.has(type) && length <= MAX_PROFILE
    if (PIXELS.has(type) || isColour || OTHERS.has(type)) kept.clean.push(chunk)
    if (PIXELS.has(type)) kept.decodable.push(chunk)
    if (isColour) kept.colours.push(chunk)
    if (type === 'IEND') break
  }
  if (!hasPixels) throw damaged('it has no pixels')
  return {
    kind: 'png',
    width,
    height,
    isAnimated,
    clean: Buffer.concat(kept.clean),
    decodable: isAnimated ? undefined : Buffer.concat(kept.decodable),
    colours: Buffer.concat(kept.colours),
  }
}

function checkFrame(content: Buffer, width: number, height: number): void {
  if (content.length !== 26) throw damaged('a frame has no header')
  const [frameWidth, frameHeight] = [content.readUInt32BE(4), content.readUInt32BE(8)]
  const [left, top] = [content.readUInt32BE(12), content.readUInt32BE(16)]
  if (left + frameWidth > width || top + frameHeight > height)
    throw new ImageFault('has a frame that is larger than the picture')
}
