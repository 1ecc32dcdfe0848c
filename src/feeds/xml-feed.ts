/**
 * Reads RSS 2.0, RSS 1.0 and Atom.
 *
 * The parser streams, expands no entities but those of XML itself, and loads nothing, so a document can neither grow nor reach out.
 * Depth, items and text are bounded, and the event loop gets a turn between pieces. Tolerant of what feeds get wrong (unknown elements,
 * stray markup), but a document that ends in the middle is refused: its missing items would be taken for new ones later.
 * Throws FeedError.
 * Standards: RSS 2.0.11, RFC 4287 (Atom), Media RSS 1.5.1 (pictures).
 */
import { Parser } from 'htmlparser2'
import { pauseFor } from '../world/time/clock.js'
import { FeedError, MAX_ITEMS, type ReadFeed } from './feed.js'
import { distinctItems, finishedItem, type ReadItem } from './item-identity.js'
import { absoluteUrl, firstImage, oneLine, textOfHtml } from './plain-text.js'

/** Characters parsed before others get a turn. */
const PIECE = 32_768
const MAX_DEPTH = 100
/** Characters of one element's text; the rest is ignored. */
const MAX_TEXT = 100_000

export const TEXT_LIMITS = { title: 300, summary: 500, author: 200 } as const

/** Texts of an item or the feed, by field, as written. */
interface Said {
  title?: string
  link?: string
  id?: string
  summary?: string
  content?: string
  author?: string
  published?: string
  updated?: string
  image?: string
}

/** The first of these that has text wins. */
const FIELDS = new Map<string, keyof Said>([
  ['title', 'title'],
  ['link', 'link'],
  ['guid', 'id'],
  ['id', 'id'],
  ['description', 'summary'],
  ['subtitle', 'summary'],
  ['summary', 'summary'],
  ['itunes:summary', 'summary'],
  ['content:encoded', 'content'],
  ['content', 'content'],
  ['dc:creator', 'author'],
  ['author', 'author'],
  ['pubdate', 'published'],
  ['published', 'published'],
  ['dc:date', 'published'],
  ['updated', 'updated'],
])

/** Atom texts that are not HTML (RFC 4287 §3.1.1). RSS texts may be HTML or not; they are read as HTML. */
const PLAIN_TYPES: ReadonlySet<string> = new Set(['', 'text', 'text/plain'])

interface Open {
  readonly name: string
  /** Base of its relative URLs (RFC 3986 §5.1, `xml:base`). */
  readonly base: string
}

class Reading {
  readonly items: Said[] = []
  readonly feed: Said = {}
  isAtom = false
  isRootClosed = false
  root = ''
  private readonly open: Open[] = []
  /** The item being read. */
  private item: Said | undefined
  /** Where text goes: a field of the item or the feed, and the depth of its element. */
  private field: { readonly name: keyof Said; readonly depth: number; readonly isPlain: boolean } | undefined
  private text = ''
  private readonly url: string

  constructor(url: string) {
    this.url = url
  }

  start(written: string, attributes: Readonly<Record<string, string>>): void {
    const name = localName(written)
    const base = absoluteUrl(attributes['xml:base'] ?? '', this.base) || this.base
    this.open.push({ name, base })
    const depth = this.open.length
    if (depth > MAX_DEPTH) throw new FeedError(`elements are nested more than ${MAX_DEPTH} deep`)
    if (depth === 1) this.begin(name)
    else if (this.field) this.text += name === 'br' || name === 'p' ? ' ' : ''
    else if (name === 'item' || name === 'entry') this.item ??= {}
    else this.startField(name, attributes)
  }

  private begin(name: string): void {
    this.root = name
    this.isAtom = name === 'feed'
    if (name !== 'rss' && name !== 'feed' && name !== 'rdf:rdf')
      throw new FeedError(
        `it is not a feed: the document is <${name.slice(0, 40)}>, not RSS, Atom or JSON Feed`,
      )
  }

  private startField(name: string, attributes: Readonly<Record<string, string>>): void {
    const { said } = this
    const { url = '', href = '', type = '', medium = '', rel = 'alternate' } = attributes
    const isPicture = type.startsWith('image/') || (medium === 'image' && !type.startsWith('video/'))
    if (name === 'media:thumbnail' || ((name === 'media:content' || name === 'enclosure') && isPicture))
      said.image ||= absoluteUrl(url, this.base)
    else if (name === 'itunes:image') said.image ||= absoluteUrl(href, this.base)
    else if (name === 'link' && href !== '') this.noteLink(rel, href, type)
    else if (name === 'name' && this.open.at(-2)?.name === 'author') this.expect('author', true)
    else {
      const field = FIELDS.get(name)
      if (field && this.isOwnField()) this.expect(field, this.isAtom && PLAIN_TYPES.has(type))
    }
  }

  private expect(name: keyof Said, isPlain: boolean): void {
    this.field = { name, depth: this.open.length, isPlain }
  }

  private noteLink(rel: string, href: string, type: string): void {
    const url = absoluteUrl(href, this.base)
    if (rel === 'alternate') this.said.link ||= url
    else if (rel === 'enclosure' && type.startsWith('image/')) this.said.image ||= url
  }

  /** Not the title of a picture or the author of a quoted source. `author` itself contains elements in Atom. */
  private isOwnField(): boolean {
    const { name: parent = '' } = this.open.at(-2) ?? {}
    const isAuthor = this.isAtom && this.open.at(-1)?.name === 'author'
    return !isAuthor && ['item', 'entry', 'channel', 'feed'].includes(parent)
  }

  addText(text: string): void {
    if (this.field && this.text.length < MAX_TEXT) this.text += text.slice(0, MAX_TEXT)
  }

  end(written: string, isImplied: boolean): void {
    const name = localName(written)
    if (this.field?.depth === this.open.length) this.endField(this.field)
    const closed = this.open.pop()
    if (this.open.length === 0) this.isRootClosed = !isImplied
    if (closed && (name === 'item' || name === 'entry') && this.item && !this.isWithinItem()) {
      if (this.items.length < MAX_ITEMS) this.items.push(this.item)
      this.item = undefined
    }
  }

  private endField({ name, isPlain }: NonNullable<Reading['field']>): void {
    const { said, text } = this
    this.field = undefined
    this.text = ''
    if (text.trim() === '' || said[name]) return
    if (name === 'link') said.link = absoluteUrl(text, this.base)
    else said[name] = isPlain ? escaped(text) : text
    if (name === 'content' || name === 'summary') said.image ||= absoluteUrl(firstImage(text), this.base)
  }

  private isWithinItem(): boolean {
    return this.open.some(({ name }) => name === 'item' || name === 'entry')
  }

  private get said(): Said {
    return this.item ?? this.feed
  }

  private get base(): string {
    return this.open.at(-1)?.base ?? this.url
  }
}

/** Lower case; Atom with a prefix reads like Atom without one. */
function localName(written: string): string {
  return written.toLowerCase().replace(/^(atom|a10):/, '')
}

/** Plain text in the form of the others, which are HTML. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

/** @param url where it was read, the base of relative links @throws FeedError */
export async function readXmlFeed(text: string, url: string): Promise<ReadFeed> {
  const reading = new Reading(url)
  const parser = new Parser(
    {
      onopentag: (name, attributes) => reading.start(name, attributes),
      ontext: piece => reading.addText(piece),
      onclosetag: (name, isImplied) => reading.end(name, isImplied),
    },
    { xmlMode: true },
  )
  for (let at = 0; at < text.length; at += PIECE) {
    parser.write(text.slice(at, at + PIECE))
    if (at + PIECE < text.length) await pauseFor(0)
  }
  parser.end()
  if (reading.root === '') throw new FeedError('it is not a feed: neither XML nor JSON')
  if (!reading.isRootClosed) throw new FeedError(`the document ends early: <${reading.root}> is not closed`)
  const { title = '', summary = '', link = '' } = reading.feed
  return {
    title: textOfHtml(title, TEXT_LIMITS.title),
    description: textOfHtml(summary, TEXT_LIMITS.summary),
    link,
    items: distinctItems(reading.items.map(itemOf), link),
  }
}

function itemOf(said: Said): ReadItem {
  const { title = '', summary, content = '', author = '', published, updated, image = '' } = said
  // A guid is often the link itself.
  const link =
    said.link || absoluteUrl(/^https?:/i.test(said.id ?? '') ? (said.id ?? '') : '', 'https://x.invalid')
  return finishedItem({
    id: said.id,
    link,
    title: textOfHtml(title, TEXT_LIMITS.title),
    summary: textOfHtml(summary ?? content, TEXT_LIMITS.summary),
    author: authorOf(author),
    image,
    at: momentOf(published ?? updated),
  })
}

/** RSS: `ann@example.net (Ann)`. */
function authorOf(written: string): string {
  const text = textOfHtml(written, TEXT_LIMITS.author)
  const [, address = '', name] = /^(\S+) \((.+)\)$/.exec(text) ?? []
  return name !== undefined && address.slice(1, -1).includes('@') ? name : text
}

const LATEST = 8_640_000_000_000_000

export function momentOf(text: string | undefined): number | null {
  const at = text === undefined ? NaN : Date.parse(oneLine(text, 100))
  return Number.isNaN(at) || at < 0 || at > LATEST ? null : at
}
