/**
 * What a rendered mail's HTML consists of, as far as mail clients and spam filters care: images, text, and features that clients lack. Pure.
 * Never throws; HTML with more tags than `MAX_TAGS` is not read and has no facts.
 */
import { Parser } from 'htmlparser2'
import { hasMoreTags } from '../../mail/compose/plain-text.js'

export interface HtmlFacts {
  readonly images: number
  /** Sources of images without an `alt` attribute; an empty one says that the image is decoration. */
  readonly imagesWithoutAlt: readonly string[]
  /** Absolute http(s) sources. */
  readonly imageUrls: readonly string[]
  /** Images whose source is empty, relative or a file. */
  readonly brokenImages: readonly string[]
  /** Characters of text. */
  readonly textLength: number
  /** Names of `UNSUPPORTED`. */
  readonly unsupported: readonly string[]
}

/** The parser is quadratic in nested tags. */
const MAX_TAGS = 12_000
const MAX_LISTED = 100
const MAX_URL = 500

interface Feature {
  /** As the author knows it. */
  readonly name: string
  /** Clients that ignore it, or show something else. */
  readonly clients: readonly string[]
}

const OUTLOOK = 'Outlook for Windows'
const GMAIL = 'Gmail'
const YAHOO = 'Yahoo Mail'

/** Elements. */
const ELEMENTS: Readonly<Record<string, Feature>> = {
  script: { name: '<script>', clients: ['all'] },
  form: { name: '<form>', clients: [OUTLOOK, GMAIL] },
  video: { name: '<video>', clients: [OUTLOOK, GMAIL, YAHOO] },
  audio: { name: '<audio>', clients: [OUTLOOK, GMAIL, YAHOO] },
  iframe: { name: '<iframe>', clients: ['all'] },
  svg: { name: '<svg>', clients: [OUTLOOK, GMAIL, YAHOO] },
  link: { name: '<link rel=stylesheet>', clients: [OUTLOOK, GMAIL, YAHOO] },
}

/** Declarations, in style sheets and attributes. */
const STYLES: readonly (Feature & { readonly pattern: RegExp })[] = [
  { name: 'display: flex', clients: [OUTLOOK], pattern: /display\s*:\s*(inline-)?flex/i },
  { name: 'display: grid', clients: [OUTLOOK, GMAIL, YAHOO], pattern: /display\s*:\s*(inline-)?grid/i },
  { name: 'position', clients: [OUTLOOK, GMAIL, YAHOO], pattern: /position\s*:\s*(absolute|fixed|sticky)/i },
  { name: 'animation', clients: [OUTLOOK, GMAIL, YAHOO], pattern: /[^-]animation\s*:|@keyframes/i },
  { name: '@font-face', clients: [OUTLOOK, GMAIL, YAHOO], pattern: /@font-face/i },
  { name: '@import', clients: [OUTLOOK, GMAIL, YAHOO], pattern: /@import/i },
  { name: 'CSS variables', clients: [OUTLOOK, GMAIL, YAHOO], pattern: /var\(\s*--/i },
  { name: 'CSS background-image', clients: [OUTLOOK], pattern: /background(-image)?\s*:[^;"']*url\(/i },
  { name: 'border-radius', clients: [OUTLOOK], pattern: /border-radius\s*:/i },
  { name: 'box-shadow', clients: [OUTLOOK, GMAIL], pattern: /box-shadow\s*:/i },
  { name: 'object-fit', clients: [OUTLOOK, GMAIL], pattern: /object-fit\s*:/i },
]

const DATA_IMAGES: Feature = { name: 'images in data: URLs', clients: [OUTLOOK, GMAIL] }

/** Features that clients lack, by name. */
export const UNSUPPORTED: ReadonlyMap<string, readonly string[]> = new Map(
  [...Object.values(ELEMENTS), ...STYLES, DATA_IMAGES].map(({ name, clients }) => [name, clients]),
)

const NOTHING: HtmlFacts = {
  images: 0,
  imagesWithoutAlt: [],
  imageUrls: [],
  brokenImages: [],
  textLength: 0,
  unsupported: [],
}

export function inspectHtml(html: string): HtmlFacts {
  if (hasMoreTags(html, MAX_TAGS)) return NOTHING
  const reader = new Reader()
  const parser = new Parser(reader, {
    decodeEntities: true,
    lowerCaseTags: true,
    lowerCaseAttributeNames: true,
  })
  parser.end(html)
  return reader.facts()
}

class Reader {
  private images = 0
  private readonly withoutAlt: string[] = []
  private readonly urls = new Set<string>()
  private readonly broken: string[] = []
  private readonly unsupported = new Set<string>()
  private textLength = 0
  /** Open elements whose text is not shown. */
  private hidden = 0
  private isInStyle = false

  onopentag(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'img') this.addImage(attributes)
    const feature = ELEMENTS[name]
    if (feature && (name !== 'link' || /stylesheet/i.test(attributes['rel'] ?? '')))
      this.unsupported.add(feature.name)
    if (attributes['style'] !== undefined) this.addStyle(attributes['style'])
    if (name === 'style') this.isInStyle = true
    if (name === 'style' || name === 'script' || name === 'title') this.hidden += 1
  }

  ontext(text: string): void {
    if (this.isInStyle) this.addStyle(text)
    if (this.hidden === 0) this.textLength += text.replace(/\s+/g, ' ').trim().length
  }

  onclosetag(name: string): void {
    if (name === 'style') this.isInStyle = false
    if (name === 'style' || name === 'script' || name === 'title') this.hidden = Math.max(0, this.hidden - 1)
  }

  facts(): HtmlFacts {
    return {
      images: this.images,
      imagesWithoutAlt: this.withoutAlt,
      imageUrls: [...this.urls],
      brokenImages: this.broken,
      textLength: this.textLength,
      unsupported: [...this.unsupported],
    }
  }

  private addImage({ src = '', alt, width, height }: Readonly<Record<string, string>>): void {
    // A pixel for counting opens is not looked at.
    if (width === '1' && height === '1') return
    this.images += 1
    const url = src.trim()
    const shown = url.slice(0, MAX_URL)
    if (alt === undefined && this.withoutAlt.length < MAX_LISTED) this.withoutAlt.push(shown)
    if (/^data:/i.test(url)) this.unsupported.add(DATA_IMAGES.name)
    else if (/^https?:\/\//i.test(url) && URL.canParse(url)) {
      if (this.urls.size < MAX_LISTED && url.length <= MAX_URL) this.urls.add(url)
    } else if (!/^cid:/i.test(url) && this.broken.length < MAX_LISTED) this.broken.push(shown)
  }

  private addStyle(text: string): void {
    for (const { name, pattern } of STYLES) if (pattern.test(text)) this.unsupported.add(name)
  }
}
