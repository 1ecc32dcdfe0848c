/**
 * Result of reading an image file without decoding it: its kind, its size, and the file without anything that is no picture.
 *
 * Used by the readers of the four kinds, and by `prepare-image.ts`. Pure.
 */

export type ImageKind = 'png' | 'jpeg' | 'gif' | 'webp'

export const MEDIA_TYPES: Readonly<Record<ImageKind, string>> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
}

/** In URLs. */
export const EXTENSIONS: Readonly<Record<ImageKind, string>> = {
  png: 'png',
  jpeg: 'jpg',
  gif: 'gif',
  webp: 'webp',
}

export interface ReadImage {
  readonly kind: ImageKind
  /** Pixels, as shown: a JPEG that is to be turned by a quarter is turned here. */
  readonly width: number
  readonly height: number
  readonly isAnimated: boolean
  /**
   * The file to be stored. Comments, metadata (place, camera, author), unknown blocks and whatever follows the picture are left out;
   * pixels, colour profile, orientation and animation stay as they were.
   */
  readonly clean: Buffer
  /** Input of a decoder; undefined for pictures that are kept in one size. */
  readonly decodable: Buffer | undefined
  /** Pieces of the file that describe its colours, to be put into smaller ones of the same kind. */
  readonly colours: Buffer
}

/** The file cannot be used. The message completes "the file ...". */
export class ImageFault extends Error {
  override readonly name = 'ImageFault'
}

export function cutShort(): ImageFault {
  return new ImageFault('ends before the picture is complete; upload it again')
}

export function damaged(what: string): ImageFault {
  return new ImageFault(`is damaged (${what})`)
}

/** Reads octets in order. @throws ImageFault past the end */
export class OctetReader {
  readonly octets: Buffer
  at: number

  constructor(octets: Buffer, at = 0) {
    this.octets = octets
    this.at = at
  }

  get isAtEnd(): boolean {
    return this.at >= this.octets.length
  }

  take(length: number): Buffer {
    const end = this.at + length
    if (end > this.octets.length) throw cutShort()
    const taken = this.octets.subarray(this.at, end)
    this.at = end
    return taken
  }

  uint8(): number {
    return this.take(1).readUInt8()
  }
}
