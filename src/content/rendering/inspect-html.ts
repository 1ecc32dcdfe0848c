/**
 * What a rendered mail's HTML consists of, as far as mail clients and spam filters care: images, text, and features that clients lack. Pure.
 * Never throws; HTML with more tags than `MAX_TAGS` is not read and has no facts.
 */
import { Parser } from 'htmlparser2'
import { hasMoreTags } from '../../mail/compose/plain-text.js'
import { FeatureFinder } from '../clients/client-features.js'

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
  /** Slugs of features that some client lacks. */
  readonly features: readonly string[]
}

/** The parser is quadratic in nested tags. */
const MAX_TAGS = 12_000
const MAX_LISTED = 100
const MAX_URL = 500

const NOTHING: HtmlFacts = {
  images: 0,
  imagesWithoutAlt: [],
  imageUrls: [],
  brokenImages: [],
  textLength: 0,
  features: [],
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
  private readonly features = new FeatureFinder()
  private sheet = ''
  private textLength = 0
  /** Open elements whose text is not shown. */
  private hidden = 0
  private isInStyle = false

  onopentag(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'img') this.addImage(attributes)
    this.features.addElement(name, attributes)
    if (name === 'style') this.isInStyle = true
    if (name === 'style' || name === 'script' || name === 'title') this.hidden += 1
  }

  ontext(text: string): void {
    if (this.isInStyle) this.sheet += text
    if (this.hidden === 0) this.textLength += text.replace(/\s+/g, ' ').trim().length
  }

  onclosetag(name: string): void {
    if (name === 'style' && this.isInStyle) {
      this.isInStyle = false
      this.features.addSheet(this.sheet)
      this.sheet = ''
    }
    if (name === 'style' || name === 'script' || name === 'title') this.hidden = Math.max(0, this.hidden - 1)
  }

  facts(): HtmlFacts {
    return {
      images: this.images,
      imagesWithoutAlt: this.withoutAlt,
      imageUrls: [...this.urls],
      brokenImages: this.broken,
      textLength: this.textLength,
      features: this.features.found(),
    }
  }

  private addImage({ src = '', alt, width, height }: Readonly<Record<string, string>>): void {
    // A pixel for counting opens is not looked at.
    if (width === '1' && height === '1') return
    this.images += 1
    const url = src.trim()
    const shown = url.slice(0, MAX_URL)
    if (alt === undefined && this.withoutAlt.length < MAX_LISTED) this.withoutAlt.push(shown)
    if (/^data:/i.test(url)) return
    if (/^https?:\/\//i.test(url) && URL.canParse(url)) {
      if (this.urls.size < MAX_LISTED && url.length <= MAX_URL) this.urls.add(url)
    } else if (!/^cid:/i.test(url) && this.broken.length < MAX_LISTED) this.broken.push(shown)
  }
}
