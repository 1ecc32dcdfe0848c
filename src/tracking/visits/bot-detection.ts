/**
 * Tells visits by machines from visits by people: by known programs and networks, and by links followed faster than anybody reads.
 *
 * The counter reads ahead of what it counts, so that even the first click of a burst is recognized. Memory is bounded. Never throws.
 */
import { NetworkList } from '../../world/net/ip-address.js'
import { KNOWN_PROGRAMS } from './known-programs.js'
import type { Visit } from './visit-store.js'
import { readMarkup, startOfMarkup } from '../../content/tracking/read-markup.js'

const MAX_CACHED = 10_000

const ROWS = KNOWN_PROGRAMS.map(({ agent, networks }) => ({
  agent,
  networks: networks && new NetworkList(networks),
}))

const rowOfAgent = cached(text => ROWS.findIndex(({ agent }) => agent?.test(text) ?? false))
const rowOfAddress = cached(text => ROWS.findIndex(({ networks }) => networks?.contains(text) ?? false))

/** Judges by method, User-Agent and network. */
export function isKnownMachine({ isHead, userAgent, address }: Visit): boolean {
  if (isHead) return true
  const rows = [rowOfAgent(userAgent), rowOfAddress(address)].filter(row => row >= 0)
  return KNOWN_PROGRAMS[Math.min(...rows)]?.by === 'machine'
}

function cached(find: (text: string) => number): (text: string) => number {
  const known = new Map<string, number>()
  return text => {
    const found = known.get(text)
    if (found !== undefined) return found
    if (known.size >= MAX_CACHED) known.clear()
    const row = find(text)
    known.set(text, row)
    return row
  }
}

/** Clicks on a message within this time of each other form a burst. */
export const BURST_MS = 1_000

/**
 * Bursts that only scanners make: a few links right after delivery, or nearly all links of the mail at any time.
 *
 *   different links   since delivery   of the mail's links    verdict
 *   3 or more         10 s at most     any                    machine
 *   4 or more         any              80 % or more           machine
 *   20 or more        any              any                    machine
 *   else                                                      person
 */
const SOON = { links: 3, withinMs: 10_000 }
const NEARLY_ALL = { links: 4, share: 0.8 }
const TOO_MANY_LINKS = 20

/** @returns undefined if it depends on the number of links in the message; use `isNearlyAll` then */
export function isBurst(links: number, sinceDeliveryMs: number): boolean | undefined {
  if (links >= SOON.links && sinceDeliveryMs <= SOON.withinMs) return true
  if (links >= TOO_MANY_LINKS) return true
  return links >= NEARLY_ALL.links ? undefined : false
}

/** @param all number of different links in the message; 0 if unknown */
export function isNearlyAll(links: number, all: number): boolean {
  return all > 0 && links >= NEARLY_ALL.share * all
}

const MAX_MESSAGES = 20_000
const MAX_CLICKS_PER_MESSAGE = 50

interface RecentClick {
  readonly url: string
  readonly at: number
}

export class ClickBursts {
  /** Least recently clicked message first. */
  private readonly clicks = new Map<string, RecentClick[]>()

  /** Call it in order of time. @param oldestPendingAt time of the oldest visit not yet judged */
  add({ kind, messageId, url = '', at }: Visit, oldestPendingAt: number): void {
    if (kind !== 'click') return
    const recent = (this.clicks.get(messageId) ?? []).filter(click => oldestPendingAt - click.at <= BURST_MS)
    if (recent.length < MAX_CLICKS_PER_MESSAGE) recent.push({ url, at })
    this.clicks.delete(messageId)
    this.clicks.set(messageId, recent)
    const [oldest] = this.clicks.keys()
    if (this.clicks.size > MAX_MESSAGES && oldest !== undefined) this.clicks.delete(oldest)
  }

  /** @returns number of different links of the message clicked around that time; 0 for an open */
  linksAround({ kind, messageId, at }: Visit): number {
    if (kind !== 'click') return 0
    const near = (this.clicks.get(messageId) ?? []).filter(click => Math.abs(click.at - at) <= BURST_MS)
    return new Set(near.map(({ url }) => url)).size
  }
}

/** Counts the different tracked links in a message's HTML source. An estimate: a link in a merge loop counts once. */
export function countLinks(html: string): number {
  const urls = new Set<string>()
  let startsAt = 0
  readMarkup(startOfMarkup(), html, {
    hrefBegins: at => (startsAt = at),
    hrefEnds(at) {
      const url = html.slice(startsAt, at).trim()
      if (isTracked(url)) urls.add(url)
    },
    endTag() {},
  })
  return urls.size
}

/** Links to our own pages are not tracked. */
function isTracked(url: string): boolean {
  if (/\{\{\s*(?:unsubscribe_url|preferences_url|view_url)\b/.test(url)) return false
  return /^https?:\/\//i.test(url) || url.startsWith('{{')
}
