/** Images of the media library, as screens and the picker show them. */
import type { components } from '#api/rest'

export type MediaImage = components['schemas']['MediaImage']

/** What the API takes. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

/** A file to show here: the smallest that is at least so wide. Images are public under another host, and under this one too. */
export function shownAt(image: MediaImage, width: number): string {
  const file = image.variants.find(one => one.width >= width) ?? image
  return file.url.slice(file.url.lastIndexOf('/m/'))
}

/** An image of the library, ready for a mail. */
export interface ChosenImage {
  readonly url: string
  /** '' if it has no alt text. */
  readonly alt: string
  /** Pixels. */
  readonly width: number
  readonly height: number
}

/** Sharp in mail of 600 pixels on screens with twice as many. */
const WIDEST = 1_200

export function chosenImage(image: MediaImage): ChosenImage {
  const large = image.width > WIDEST ? image.variants.findLast(({ width }) => width <= WIDEST) : undefined
  const { url, width, height } = large?.width === WIDEST ? large : image
  return { url, alt: image.alt_text ?? '', width, height }
}
