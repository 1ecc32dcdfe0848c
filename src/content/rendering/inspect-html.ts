/**
 * Counts in a rendered mail's HTML what mail clients and spam filters care about: images, text, and features that clients lack. Pure.
 * Never throws; HTML with more tags than `MAX_TAGS` is not read and has no facts.
 */
import { Parser } from 'htmlparser2'
import { hasMoreTags } from '../../mail/compose/plain-text.js'
import { FeatureFinder } from '../clients/client-features.js'
import { faultOfLink } from './link-fault.js'

export interface HtmlFacts {
  readonly images: number
  /** Sources of images without an `alt` attribute; an empty one says that the image is decoration. */
  readonly imagesWithoutAlt: readonly string[]
  /** Sources of images whose `alt` is empty. */
  readonly imagesWithEmptyAlt: readonly string[]
  /** Absolute http(s) sources. */
  readonly imageUrls: readonly string[]
  /** Images whose source is empty, relative or a file. */
  readonly brokenImages: readonly string[]
  /** Links to the web. */
  readonly links: number
  /** Links without a URL. */
  readonly emptyLinks: number
  /** URLs of links that lead nowhere from a mail, such as relative ones. */
  readonly brokenLinks: readonly string[]
  /** Links whose text is the address of another host than theirs: text and URL. */
  readonly mismatchedLinks: readonly string[]
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
  imagesWithEmptyAlt: [],
  imageUrls: [],
  brokenImages: [],
  links: 0,
  emptyLinks: 0,
  brokenLinks: [],
  mismatchedLinks: [],
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
  private readonly withEmptyAlt: string[] = []
  private readonly urls = new Set<string>()
  private readonly broken: string[] = []
  private readonly features = new FeatureFinder()
  private sheet = ''
  private links = 0
  private emptyLinks = 0
  private readonly brokenLinks = new Set<string>()
  private readonly mismatched: string[] = []
  /** The open link: its URL, and the beginning of its text. */
  private link: { readonly href: string; text: string } | undefined
  private textLength = 0
  /** Open elements whose text is not shown. */
  private hidden = 0
  private isInStyle = false

  onopentag(name: string, attributes: Readonly<Record<string, string>>): void {
    if (name === 'img') this.addImage(attributes)
    if (name === 'a' || name === 'area') this.addUrl(attributes['href'])
    if (name === 'a') this.link = { href: (attributes['href'] ?? '').trim(), text: '' }
    this.features.addElement(name, attributes)
    if (name === 'style') this.isInStyle = true
    if (name === 'style' || name === 'script' || name === 'title') this.hidden += 1
  }

  ontext(text: string): void {
    if (this.isInStyle) this.sheet += text
    if (this.link && this.link.text.length <= MAX_URL) this.link.text += text
    if (this.hidden === 0) this.textLength += text.replace(/\s+/g, ' ').trim().length
  }

  onclosetag(name: string): void {
    if (name === 'a') this.endLink()
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
      imagesWithEmptyAlt: this.withEmptyAlt,
      imageUrls: [...this.urls],
      brokenImages: this.broken,
      links: this.links,
      emptyLinks: this.emptyLinks,
      brokenLinks: [...this.brokenLinks],
      mismatchedLinks: this.mismatched,
      textLength: this.textLength,
      features: this.features.found(),
    }
  }

  /** @param href absent for the target of a link within the mail */
  private addUrl(href: string | undefined): void {
    const url = href?.trim()
    if (url === undefined || /^#./.test(url)) return
    const fault = faultOfLink(url)
    if (fault === 'link_empty') this.emptyLinks += 1
    if (fault === 'link_broken' && this.brokenLinks.size < MAX_LISTED)
      this.brokenLinks.add(url.slice(0, MAX_URL))
  }

  private endLink(): void {
    const { href = '', text = '' } = this.link ?? {}
    this.link = undefined
    if (!/^https?:\/\//i.test(href) || !URL.canParse(href)) return
    this.links += 1
    const shown = hostIn(text.trim())
    const host = new URL(href).hostname
    if (shown !== undefined && !isOfSame(shown, host) && this.mismatched.length < MAX_LISTED)
      this.mismatched.push(`${text.trim().slice(0, MAX_URL)} → ${href.slice(0, MAX_URL)}`)
  }

  private addImage({ src = '', alt, width, height }: Readonly<Record<string, string>>): void {
    // A pixel for counting opens is not looked at.
    if (width === '1' && height === '1') return
    this.images += 1
    const url = src.trim()
    const shown = url.slice(0, MAX_URL)
    if (alt === undefined && this.withoutAlt.length < MAX_LISTED) this.withoutAlt.push(shown)
    if (alt?.trim() === '' && this.withEmptyAlt.length < MAX_LISTED) this.withEmptyAlt.push(shown)
    if (/^data:/i.test(url)) return
    if (/^https?:\/\//i.test(url) && URL.canParse(url)) {
      if (this.urls.size < MAX_LISTED && url.length <= MAX_URL) this.urls.add(url)
    } else if (!/^cid:/i.test(url) && this.broken.length < MAX_LISTED) this.broken.push(shown)
  }
}

/** The host of a text that is an address on the web, e.g. `www.shop.example/jugs`. */
function hostIn(text: string): string | undefined {
  const written = /^(?:https?:\/\/)?((?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24})(?:[/?#:]\S*)?$/i.exec(text)?.[1]
  return written?.toLowerCase()
}

/** Whether one is the other, or within it; `www.` aside. */
function isOfSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map(host => host.replace(/^www\./, '')) as [string, string]
  return a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`)
}
