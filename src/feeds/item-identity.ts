/**
 * Tells the items of a feed apart, and recognizes them when they are read again.
 *
 * An item has several names: its guid or id, its link without what varies (scheme, tracking), and its title with its date. It is known if one
 * of them is, since feeds change their guids: with a new publishing system, from http to https, or at each reading. A name that different
 * items of the same document share, or a link to the home page, identifies nothing and is not used.
 * Pure; linear in the items. Throws FeedError if no item can be told from another.
 */
import { createHash } from 'node:crypto'
import { FeedError, type FeedItem } from './feed.js'
import { absoluteUrl, oneLine } from './plain-text.js'

const SHORT_TITLE = 80

export interface ReadItem extends Omit<FeedItem, 'keys'> {
  /** As written; empty if it has none. */
  readonly id: string
}

/** Without a title it is called by its first words. */
export function finishedItem({
  id = '',
  ...item
}: Omit<ReadItem, 'id'> & { readonly id?: string | undefined }): ReadItem {
  return { ...item, id: id.trim(), title: item.title || oneLine(item.summary, SHORT_TITLE) || item.link }
}

/**
 * Of items that are the same, the first stays; those with nothing to show do not.
 *
 * @param home link of the feed itself; empty if it has none
 * @returns newest first; items without a date stay behind the one before them
 * @throws FeedError
 */
export function distinctItems(read: readonly ReadItem[], home: string): FeedItem[] {
  const shown = read.filter(({ title }) => title !== '')
  refuseIndistinct(shown)
  return newestFirst(merged(shown, home))
}

/** The key of an item from before items had several names. It is stored, so it must not change. */
function mainName({ id, link, title, summary, at }: ReadItem): string {
  return id || link || `${title} ${summary} ${at ?? ''}`
}

function refuseIndistinct(items: readonly ReadItem[]): void {
  const [first] = items
  if (!first || new Set(items.map(mainName)).size > 1 || new Set(items.map(contentOf)).size < 2) return
  const shared = first.id ? 'the same guid or id' : 'the same link and no guid'
  throw new FeedError(
    `all ${items.length} items have ${shared}, so new ones cannot be told from those sent before; each item needs a guid of its own`,
  )
}

const contentOf = ({ link, title, at }: ReadItem) => `${at ?? ''}\n${title}\n${link}`

/** Names that an item may be recognized by, if they are those of no other. */
interface Candidates {
  readonly item: ReadItem
  /** Of each of its URLs, without and with the fragment. */
  readonly links: readonly (readonly [string, string])[]
  /** Empty without a date. */
  readonly dated: string
}

function candidatesOf(item: ReadItem): Candidates {
  const dated = item.at === null ? '' : `dated\n${item.at}\n${item.title}`
  return { item, links: urlsOf(item).map(linkNames), dated }
}

/** Its link and, since a guid is often an earlier form of the link, its guid. */
function urlsOf({ id, link }: ReadItem): string[] {
  return [link, /^https?:/i.test(id) ? absoluteUrl(id, id) : ''].filter(url => url !== '')
}

/** Finds the names that different items share. */
class SharedNames {
  /** By name, what distinguishes the items that have it. */
  private readonly owners = new Map<string, string>()
  private readonly shared = new Set<string>()

  constructor(all: readonly Candidates[]) {
    for (const { item, links, dated } of all) {
      for (const name of links.flat()) this.note(name, `${item.at ?? ''}\n${item.title}`)
      this.note(dated, links[0]?.[1] || item.id)
    }
  }

  private note(name: string, owner: string): void {
    const other = this.owners.get(name)
    if (other === undefined) this.owners.set(name, owner)
    else if (other !== owner) this.shared.add(name)
  }

  has(name: string): boolean {
    return this.shared.has(name)
  }
}

/** Added by newsletters, advertisements and analytics: none of them chooses the page. */
const TRACKING =
  /^(utm_|mc_|pk_|mtm_|hsa_|_hs|oly_|fbclid$|gclid$|dclid$|gbraid$|wbraid$|msclkid$|yclid$|twclid$|ttclid$|igshid$|li_fat_id$|mkt_tok$|vero_id$|xtor$|_ga$|_gl$)/i

/**
 * The part of a link that stays the same when it is published again: http or https, `www.`, tracking parameters and a slash at the end do not count.
 *
 * @param link that can be parsed
 * @returns without its fragment, and with it for pages that hold several items, such as a list of changes; empty for a home page
 */
function linkNames(link: string): readonly [string, string] {
  const url = new URL(link)
  const asked = String(new URLSearchParams([...url.searchParams].filter(([name]) => !TRACKING.test(name))))
  const path = url.pathname.replace(/\/$/, '')
  if (path === '' && asked === '') return ['', '']
  const page = `link\n${url.host.replace(/^www\./, '')}${path}?${asked}`
  return [page, page + url.hash]
}

function merged(items: readonly ReadItem[], home: string): FeedItem[] {
  const all = items.map(candidatesOf)
  const shared = new SharedNames(all)
  const [homeName] = URL.canParse(home) ? linkNames(home) : ['']
  const isOwn = (name: string) => name !== '' && name !== homeName && !shared.has(name)
  const kept: { readonly item: ReadItem; readonly names: Set<string> }[] = []
  const byName = new Map<string, (typeof kept)[number]>()
  for (const { item, links, dated } of all) {
    const others = [...links.map(names => names.find(isOwn) ?? ''), dated].filter(isOwn)
    const names = [mainName(item), ...others]
    let same = names.map(name => byName.get(name)).find(found => found !== undefined)
    if (!same) kept.push((same = { item, names: new Set() }))
    for (const name of names) {
      same.names.add(name)
      byName.set(name, same)
    }
  }
  return kept.map(({ item: { id: _, ...item }, names }) => ({ ...item, keys: [...names].map(digest) }))
}

function digest(name: string): string {
  return createHash('sha256').update(name).digest('base64url')
}

function newestFirst(items: readonly FeedItem[]): FeedItem[] {
  let last = Infinity
  const dated = items.map(item => {
    last = item.at ?? last
    return { item, at: last }
  })
  return dated.sort((a, b) => (a.at === b.at ? 0 : b.at - a.at)).map(({ item }) => item)
}
