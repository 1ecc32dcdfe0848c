/**
 * Reads JSON Feed 1.0 and 1.1 (jsonfeed.org). Fields of the wrong type count as missing. Throws FeedError.
 */
import { FeedError, MAX_ITEMS, type ReadFeed } from './feed.js'
import { distinctItems, finishedItem, type ReadItem } from './item-identity.js'
import { absoluteUrl, firstImage, oneLine, textOfHtml } from './plain-text.js'
import { momentOf, TEXT_LIMITS } from './xml-feed.js'

/** @param url where it was read, the base of relative links @throws FeedError */
export function readJsonFeed(text: string, url: string): ReadFeed {
  const feed = objectOf(parsed(text))
  if (!textIn(feed, 'version').includes('jsonfeed.org/version/'))
    throw new FeedError('it is not a feed: JSON without the "version" of JSON Feed')
  const items = Array.isArray(feed['items']) ? (feed['items'] as readonly unknown[]) : undefined
  if (!items) throw new FeedError('the JSON feed has no list "items"')
  const link = absoluteUrl(textIn(feed, 'home_page_url'), url)
  return {
    title: oneLine(textIn(feed, 'title'), TEXT_LIMITS.title),
    description: oneLine(textIn(feed, 'description'), TEXT_LIMITS.summary),
    link,
    items: distinctItems(
      items.slice(0, MAX_ITEMS).map(item => itemOf(objectOf(item), url)),
      link,
    ),
  }
}

function itemOf(item: Fields, url: string): ReadItem {
  const html = textIn(item, 'content_html')
  const plain = textIn(item, 'summary') || textIn(item, 'content_text')
  const summary = plain ? oneLine(plain, TEXT_LIMITS.summary) : textOfHtml(html, TEXT_LIMITS.summary)
  const picture = textIn(item, 'image') || textIn(item, 'banner_image') || firstImage(html)
  return finishedItem({
    // Version 1.0 allowed numbers.
    id: typeof item['id'] === 'number' ? String(item['id']) : textIn(item, 'id'),
    link: absoluteUrl(textIn(item, 'url') || textIn(item, 'external_url'), url),
    title: oneLine(textIn(item, 'title'), TEXT_LIMITS.title),
    summary,
    author: oneLine(authorOf(item), TEXT_LIMITS.author),
    image: absoluteUrl(picture, url),
    at: momentOf(textIn(item, 'date_published') || textIn(item, 'date_modified') || undefined),
  })
}

function authorOf(item: Fields): string {
  const authors = item['authors']
  const first: unknown = Array.isArray(authors) ? authors[0] : item['author']
  return textIn(objectOf(first), 'name')
}

type Fields = Readonly<Record<string, unknown>>

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new FeedError('it is not a feed: the JSON is not well-formed')
  }
}

function objectOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function textIn(of: Fields, name: string): string {
  const value = Object.hasOwn(of, name) ? of[name] : undefined
  return typeof value === 'string' ? value : ''
}
