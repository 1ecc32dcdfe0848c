/**
 * Reads WebP files without decoding them.
 *
 * Standards: RFC 9649 §2 (container), §3.4 (VP8L header), RFC 6386 §9.1 (VP8 frame header). Pure. @throws ImageFault
 */
import { damaged, ImageFault, OctetReader, type ReadImage } from './image.js'

const KEPT = new Set(['VP8 ', 'VP8L', 'VP8X', 'ALPH', 'ANIM', 'ANMF', 'ICCP'])
/** Flags of VP8X. */
const [HAS_EXIF, HAS_XMP] = [0x08, 0x04] as const

interface Size {
  readonly width: number
  readonly height: number
}

export function readWebp(octets: Buffer): ReadImage {
  const whole = new OctetReader(octets, 4)
  const size = whole.take(4).readUInt32LE()
  whole.at = 8
  const reader = new OctetReader(whole.take(size), 4)
  const pieces: Buffer[] = []
  let canvas: Size | undefined
  let picture: Size | undefined
  let isAnimated = false
  let hasProfile = false
  while (!reader.isAtEnd) {
    const start = reader.at
    const type = reader.take(4).toString('latin1')
    const length = reader.take(4).readUInt32LE()
    const content = reader.take(length)
    if (length % 2 === 1) reader.take(1)
    if (!KEPT.has(type)) continue
    const chunk = Buffer.from(reader.octets.subarray(start, reader.at))
    if (type === 'VP8X') {
      canvas = readCanvas(content)
      chunk.writeUInt8(content.readUInt8(0) & ~(HAS_EXIF | HAS_XMP), 8)
    } else if (type === 'VP8 ' || type === 'VP8L') {
      picture = requireSame(type === 'VP8 ' ? readLossy(content) : readLossless(content), canvas ?? picture)
    } else if (type === 'ANMF') {
      isAnimated = true
      checkFrame(content, canvas)
    } else if (type === 'ICCP') hasProfile = true
    pieces.push(chunk)
  }
  const shown = canvas ?? picture
  if (!shown || (!picture && !isAnimated)) throw damaged('it has no pixels')
  const body = Buffer.concat([Buffer.from('WEBP'), ...pieces])
  const head = Buffer.alloc(8)
  head.write('RIFF', 'latin1')
  head.writeUInt32LE(body.length, 4)
  const clean = Buffer.concat([head, body])
  return {
    kind: 'webp',
    ...shown,
    isAnimated,
    clean,
    // Smaller sizes could not have its colour profile.
    decodable: isAnimated || hasProfile ? undefined : clean,
    colours: Buffer.alloc(0),
  }
}

function readCanvas(content: Buffer): Size {
  if (content.length < 10) throw damaged('its header is too short')
  return { width: content.readUIntLE(4, 3) + 1, height: content.readUIntLE(7, 3) + 1 }
}

function readLossy(content: Buffer): Size {
  const isKeyFrame = content.length >= 10 && (content.readUInt8(0) & 1) === 0
  if (!isKeyFrame || content.readUIntBE(3, 3) !== 0x9d012a) throw damaged('its picture has no header')
  return { width: content.readUInt16LE(6) & 0x3fff, height: content.readUInt16LE(8) & 0x3fff }
}

function readLossless(content: Buffer): Size {
  if (content.length < 5 || content.readUInt8(0) !== 0x2f) throw damaged('its picture has no header')
  const bits = content.readUInt32LE(1)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

/** The size of the container must be that of the picture, which is what a decoder allocates. */
function requireSame(picture: Size, other: Size | undefined): Size {
  if (other && (other.width !== picture.width || other.height !== picture.height))
    throw new ImageFault('says two different sizes')
  return picture
}

function checkFrame(content: Buffer, canvas: Size | undefined): void {
  if (!canvas || content.length < 16) throw damaged('a frame has no header')
  const [left, top] = [2 * content.readUIntLE(0, 3), 2 * content.readUIntLE(3, 3)]
  const [width, height] = [content.readUIntLE(6, 3) + 1, content.readUIntLE(9, 3) + 1]
  if (left + width > canvas.width || top + height > canvas.height)
    throw new ImageFault('has a frame that is larger than the picture')
}
