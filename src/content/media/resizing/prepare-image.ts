/**
 * Makes what is stored of an uploaded image: the clean file, and smaller ones of the same kind.
 *
 * Called in the image thread. A PNG, JPEG or WebP that does not move is decoded, which proves that it can be shown; smaller files are made
 * of it, one for each of the usual widths it exceeds, and kept if they are smaller in octets too. Others are kept as they are.
 * @throws ImageFault
 */
import { createHash } from 'node:crypto'
import { ImageFault, type ImageKind, type ReadImage } from '../reading/image.js'
import { PNG_HEAD_OCTETS } from '../reading/png.js'
import { readImage } from '../reading/read-image.js'
import { CODECS, type Pixels } from './codecs.js'
import { scaleDown } from './scale.js'

/** Widths of the smaller files: two columns, one column, and one column on screens with twice the pixels. */
export const VARIANT_WIDTHS = [300, 600, 1_200] as const

export interface ImageFile {
  /** Pixels. */
  readonly width: number
  readonly height: number
  /** SHA-256 of the octets, hexadecimal. */
  readonly hash: string
  readonly octets: Uint8Array
}

export interface PreparedImage {
  readonly kind: ImageKind
  readonly isAnimated: boolean
  readonly original: ImageFile
  /** In order of width. */
  readonly variants: readonly ImageFile[]
}

/** @param maxPixels width times height */
export async function prepareImage(octets: Uint8Array, maxPixels: number): Promise<PreparedImage> {
  const read = readImage(Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength), maxPixels)
  const { kind, isAnimated, width, height, clean } = read
  const original = fileOf(clean, width, height)
  return { kind, isAnimated, original, variants: await variantsOf(read) }
}

async function variantsOf({ kind, width, decodable, clean, colours }: ReadImage): Promise<ImageFile[]> {
  if (kind === 'gif' || !decodable) return []
  const codec = CODECS[kind]
  let pixels = await decode(codec, decodable)
  const variants: ImageFile[] = []
  // From wide to narrow, each from the one before: the full picture is scaled once.
  for (const wanted of [...VARIANT_WIDTHS].reverse()) {
    if (wanted >= width) continue
    pixels = scaleDown(pixels, wanted)
    const octets = withColours(kind, Buffer.from(await codec.encode(pixels)), colours)
    if (octets.length < clean.length) variants.unshift(fileOf(octets, pixels.width, pixels.height))
  }
  return variants
}

async function decode(codec: (typeof CODECS)['png'], octets: Buffer): Promise<Pixels> {
  try {
    return await codec.decode(octets)
  } catch {
    throw new ImageFault('cannot be decoded; it is damaged, or no picture')
  }
}

/** Puts the colour profile of the original into a smaller file. */
function withColours(kind: ImageKind, encoded: Buffer, colours: Buffer): Buffer {
  if (colours.length === 0) return encoded
  // After the header of a PNG, or the JFIF segment of a JPEG.
  const at = kind === 'png' ? PNG_HEAD_OCTETS : 4 + encoded.readUInt16BE(4)
  return Buffer.concat([encoded.subarray(0, at), colours, encoded.subarray(at)])
}

function fileOf(octets: Buffer, width: number, height: number): ImageFile {
  const hash = createHash('sha256').update(octets).digest('hex')
  // Not part of a pool, so that it can be transferred.
  return { width, height, hash, octets: Uint8Array.from(octets) }
}
