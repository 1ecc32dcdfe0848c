/**
 * Reads GIF files without decoding them. They are kept in one size, animated or not.
 *
 * Standard: GIF89a §18 to §27. Pure. @throws ImageFault
 */
import { cutShort, damaged, ImageFault, OctetReader, type ReadImage } from './image.js'

const [EXTENSION, FRAME, TRAILER] = [0x21, 0x2c, 0x3b] as const
const [GRAPHIC_CONTROL, APPLICATION] = [0xf9, 0xff] as const
/** Extensions that say how often an animation repeats. */
const LOOPS = new Set(['NETSCAPE2.0', 'ANIMEXTS1.0'])
const MAX_FRAMES = 2_000

export function readGif(octets: Buffer): ReadImage {
  const reader = new OctetReader(octets)
  const head = reader.take(13)
  const [width, height] = [head.readUInt16LE(6), head.readUInt16LE(8)]
  const pieces: Buffer[] = [head, reader.take(tableOctets(head.readUInt8(10)))]
  let frames = 0
  for (;;) {
    // Some encoders leave the trailer out.
    if (reader.isAtEnd && frames > 0) break
    const start = reader.at
    const block = reader.uint8()
    if (block === TRAILER) break
    if (block === FRAME) {
      const frame = reader.take(9)
      checkFrame(frame, width, height)
      reader.take(tableOctets(frame.readUInt8(8)))
      reader.uint8()
      skipBlocks(reader)
      if (++frames > MAX_FRAMES) throw new ImageFault(`has more than ${MAX_FRAMES} frames`)
      pieces.push(octets.subarray(start, reader.at))
    } else if (block === EXTENSION) {
      const label = reader.uint8()
      const name = octets.toString('latin1', reader.at + 1, reader.at + 12)
      skipBlocks(reader)
      if (label === GRAPHIC_CONTROL || (label === APPLICATION && LOOPS.has(name)))
        pieces.push(octets.subarray(start, reader.at))
    } else throw damaged('it has an unknown block')
  }
  if (frames === 0) throw damaged('it has no pixels')
  return {
    kind: 'gif',
    width,
    height,
    isAnimated: frames > 1,
    clean: Buffer.concat([...pieces, Buffer.from([TRAILER])]),
    decodable: undefined,
    colours: Buffer.alloc(0),
  }
}

/** Octets of the colour table that these flags announce. */
function tableOctets(flags: number): number {
  return (flags & 0x80) === 0 ? 0 : 3 * 2 ** ((flags & 0x07) + 1)
}

function checkFrame(frame: Buffer, width: number, height: number): void {
  const [left, top] = [frame.readUInt16LE(0), frame.readUInt16LE(2)]
  const [frameWidth, frameHeight] = [frame.readUInt16LE(4), frame.readUInt16LE(6)]
  if (left + frameWidth > width || top + frameHeight > height)
    throw new ImageFault('has a frame that is larger than the picture')
}

/** Skips sub-blocks up to the empty one. */
function skipBlocks(reader: OctetReader): void {
  for (;;) {
    if (reader.isAtEnd) throw cutShort()
    const length = reader.uint8()
    if (length === 0) return
    reader.take(length)
  }
}
