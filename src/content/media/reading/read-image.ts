/**
 * Reads an uploaded image: kind by its first octets, size by its header, and the file without what is no picture.
 *
 * Called in the image thread. Nothing is decoded, so a small file that would unpack into gigabytes is refused for its announced size. The
 * name and the declared media type do not count. Pure. @throws ImageFault
 */
import { readGif } from './gif.js'
import { ImageFault, type ReadImage } from './image.js'
import { JPEG_SIGNATURE, readJpeg } from './jpeg.js'
import { PNG_SIGNATURE, readPng } from './png.js'
import { readWebp } from './webp.js'

/** @param maxPixels width times height */
export function readImage(octets: Buffer, maxPixels: number): ReadImage {
  const image = readerOf(octets)(octets)
  const { width, height } = image
  if (width === 0 || height === 0) throw new ImageFault('has no pixels')
  if (width * height > maxPixels)
    throw new ImageFault(
      `is ${width} x ${height} pixels; at most ${formatPixels(maxPixels)} are allowed. Make it smaller before the upload`,
    )
  return image
}

function readerOf(octets: Buffer): (octets: Buffer) => ReadImage {
  if (octets.length === 0) throw new ImageFault('is empty')
  const begins = (signature: Buffer | string, at = 0) => {
    const wanted = Buffer.from(signature as string)
    return octets.subarray(at, at + wanted.length).equals(wanted)
  }
  if (begins(PNG_SIGNATURE)) return readPng
  if (begins(JPEG_SIGNATURE)) return readJpeg
  if (begins('GIF87a') || begins('GIF89a')) return readGif
  if (begins('RIFF') && begins('WEBP', 8)) return readWebp
  throw new ImageFault('is no PNG, JPEG, GIF or WebP image, whatever its name says')
}

function formatPixels(pixels: number): string {
  return `${Math.floor(pixels / 1_000_000)} million`
}
