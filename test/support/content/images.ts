/** Image files for tests, and hostile ones. */
import { crc32, deflateSync } from 'node:zlib'
import { CODECS } from '../../../src/content/media/resizing/codecs.js'

type Color = readonly [number, number, number, number?]

/** @param colorAt of a point, both 0 to 1 */
function pixels(width: number, height: number, colorAt: (x: number, y: number) => Color) {
  const data = new Uint8ClampedArray(width * height * 4)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const [red, green, blue, alpha = 255] = colorAt(x / width, y / height)
      data.set([red, green, blue, alpha], (y * width + x) * 4)
    }
  return { data, width, height }
}

/** Blue above and red below, with something to compress in it. */
const usual = (x: number, y: number): Color =>
  y < 0.5 ? [(x * 997) % 90, 40, 220] : [220, 40, (x * 997) % 90]

export const picture = async (
  kind: 'png' | 'jpeg' | 'webp',
  width: number,
  height: number,
): Promise<Buffer> => Buffer.from(await CODECS[kind].encode(pixels(width, height, usual)))

/** The color of a point of a file, both 0 to 1. */
export async function colorAt(kind: 'png' | 'jpeg' | 'webp', file: Uint8Array, x: number, y: number) {
  const { data, width, height } = await CODECS[kind].decode(file)
  const at = (Math.floor(y * height) * width + Math.floor(x * width)) * 4
  return { width, height, color: [...data.subarray(at, at + 3)] }
}

export function pngChunk(type: string, content: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** A PNG that says this size; its pixels are those given. */
export function pngOf(width: number, height: number, rows: Uint8Array, ...others: Buffer[]): Buffer {
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  head.set([8, 0], 8)
  const chunks = [pngChunk('IHDR', head), ...others, pngChunk('IDAT', deflateSync(rows))]
  return Buffer.concat([SIGNATURE, ...chunks, pngChunk('IEND', Buffer.alloc(0))])
}

/** With two frames. @param rows of grey pixels, each begun by its filter */
export function animatedPng(side = 1, rows: Uint8Array = Buffer.from([0, 255])): Buffer {
  const control = Buffer.alloc(8)
  control.writeUInt32BE(2)
  const frame = (sequence: number) => {
    const content = Buffer.alloc(26)
    content.writeUInt32BE(sequence, 0)
    content.writeUInt32BE(1, 4)
    content.writeUInt32BE(1, 8)
    return pngChunk('fcTL', content)
  }
  return pngOf(side, side, rows, pngChunk('acTL', control), frame(0), frame(1))
}

/** Frames of one pixel. */
export function gif(frames: number, ...others: Buffer[]): Buffer {
  const head = Buffer.from('GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff', 'latin1')
  const control = Buffer.from([0x21, 0xf9, 4, 0, 10, 0, 0, 0])
  const frame = Buffer.from([0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0])
  const all = Array.from({ length: frames }, () => [control, frame]).flat()
  return Buffer.concat([head, ...others, ...all, Buffer.from([0x3b])])
}

export function gifComment(text: string): Buffer {
  return Buffer.concat([Buffer.from([0x21, 0xfe, text.length]), Buffer.from(text), Buffer.from([0])])
}

export function jpegSegment(marker: number, content: Uint8Array): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0])
  head.writeUInt16BE(content.length + 2, 2)
  return Buffer.concat([head, content])
}

/** Puts segments behind the first two octets. */
export function withSegments(jpeg: Buffer, ...segments: Buffer[]): Buffer {
  return Buffer.concat([jpeg.subarray(0, 2), ...segments, jpeg.subarray(2)])
}

/** Exif that says how the picture is to be turned, and where it was taken. */
export function exif(orientation: number, place: string): Buffer {
  const tiff = Buffer.concat([Buffer.from('II*\0\x08\0\0\0', 'latin1'), Buffer.alloc(18), Buffer.from(place)])
  tiff.writeUInt16LE(1, 8)
  tiff.writeUInt16LE(0x0112, 10)
  tiff.writeUInt16LE(3, 12)
  tiff.writeUInt32LE(1, 14)
  tiff.writeUInt16LE(orientation, 18)
  return jpegSegment(0xe1, Buffer.concat([Buffer.from('Exif\0\0', 'latin1'), tiff]))
}

export function webpChunk(type: string, content: Uint8Array): Buffer {
  const head = Buffer.alloc(8)
  head.write(type, 'latin1')
  head.writeUInt32LE(content.length, 4)
  return Buffer.concat([head, content, Buffer.alloc(content.length % 2)])
}

export function webpOf(...chunks: Buffer[]): Buffer {
  return webpChunk('RIFF', Buffer.concat([Buffer.from('WEBP'), ...chunks]))
}

/** The header of an extended file; its flags say that there is metadata. */
export function webpCanvas(width: number, height: number): Buffer {
  const content = Buffer.alloc(10)
  content.writeUInt8(0x0c, 0)
  content.writeUIntLE(width - 1, 4, 3)
  content.writeUIntLE(height - 1, 7, 3)
  return webpChunk('VP8X', content)
}
