/**
 * Tells visits by machines from visits by people: by known programs and networks, and by links followed faster than anybody reads.
 *
 * The counter reads ahead of what it counts, so that even the first click of a burst is recognized. Memory is bounded. Never throws.
 */
import { NetworkList } from '../../world/net/ip-address.js'
import type { Visit } from './visit-store.js'
import { MarkupPlace, readMarkup, readOutlookLinks } from '../../mail/html/read-markup.js'

/**
 * Programs that fetch pixels or follow links, and whether such a request means that a person reads the message.
 *
 * The first matching row decides. Honest programs are matched by User-Agent; scanners that pose as browsers by their published
 * networks. Anything unknown counts as a person unless it behaves like a scanner.
 * `test/tracking/bot-detection.test.ts` has real User-Agents for each row.
 */
export interface KnownProgram {
  readonly name: string
  readonly by: 'person' | 'machine'
  readonly agent?: RegExp
  /** CIDR. */
  readonly networks?: readonly string[]
}

export const KNOWN_PROGRAMS: readonly KnownProgram[] = [
  // Fetch when the message is displayed, on behalf of the reader's program.
  { name: 'Gmail image proxy', by: 'person', agent: /\bGoogleImageProxy\b|\bggpht\.com\b/ },
  { name: 'Yahoo Mail proxy', by: 'person', agent: /\bYahoo ?MailProxy\b/i },

  // Fetches new mail before it is opened, posing as a malformed Edge of 2015.
  {
    name: 'Gmail prefetcher',
    by: 'machine',
    agent: /Chrome\/42\.0\.2311\.135 Safari\/537\.36 Edge\/12\.246(?: Mozilla\/5\.0)?$/,
  },
  // Loads the images of all mail, opened or not; this is its entire User-Agent.
  { name: 'Apple Mail Privacy Protection', by: 'machine', agent: /^Mozilla\/5\.0$/ },
  { name: 'no User-Agent', by: 'machine', agent: /^\s*$/ },

  {
    name: 'command-line programs',
    by: 'machine',
    agent: /^(?:curl|wget|aria2|httpie|lynx|w3m|elinks)\b|\bWindowsPowerShell\/|\bPowerShell\/\d/i,
  },
  {
    name: 'Python libraries',
    by: 'machine',
    agent: /^(?:python-|python\/|python$)|\b(?:aiohttp|urllib3|httpx|scrapy)\//i,
  },
  { name: 'Go library', by: 'machine', agent: /^(?:Go-http-client|go-resty|fasthttp|Go \d)/ },
  {
    name: 'Java libraries',
    by: 'machine',
    agent:
      /^(?:Java|Java-http-client|Apache-HttpClient|Apache-HttpAsyncClient|AHC|okhttp|Jersey|Jetty|ReactorNetty)\b/i,
  },
  {
    name: 'JavaScript libraries',
    by: 'machine',
    agent: /^(?:axios|node|node-fetch|undici|got|needle|superagent|node-superagent|Deno|Bun)(?:\/|\s|$)/i,
  },
  {
    name: 'PHP libraries',
    by: 'machine',
    agent: /^(?:GuzzleHttp|PHP|Symfony HttpClient|WordPress)(?:\/|\s|$)/i,
  },
  {
    name: 'Ruby libraries',
    by: 'machine',
    agent: /^(?:Ruby|Faraday|rest-client|HTTParty|http\.rb|Typhoeus)\b/i,
  },
  {
    name: 'other libraries',
    by: 'machine',
    agent:
      /^(?:libwww-perl|LWP|lua-resty-http|reqwest|hyper|ureq|Dart|RestSharp|PostmanRuntime|insomnia|WinHttp)\b|\blibwww-perl\//i,
  },

  {
    name: 'Microsoft previews',
    by: 'machine',
    agent: /SkypeUriPreview|BingPreview|Microsoft Office Existence Discovery/,
  },
  // Networks of Exchange Online Protection, which includes Safe Links.
  {
    name: 'Outlook Safe Links',
    by: 'machine',
    networks: ['40.92.0.0/15', '40.107.0.0/16', '52.100.0.0/14', '104.47.0.0/17', '2a01:111:f403::/48'],
  },
  {
    name: 'Barracuda',
    by: 'machine',
    agent: /Barracuda/i,
    networks: ['64.235.144.0/20', '209.222.80.0/21'],
  },
  {
    name: 'Proofpoint',
    by: 'machine',
    agent: /Proofpoint/i,
    networks: ['67.231.144.0/20', '148.163.128.0/19', '208.84.64.0/22'],
  },
  {
    name: 'Mimecast',
    by: 'machine',
    agent: /Mimecast/i,
    networks: ['91.220.42.0/24', '103.13.69.0/24', '146.101.78.0/24', '195.130.217.0/24', '207.211.30.0/24'],
  },
  { name: 'Cisco Secure Email', by: 'machine', agent: /IronPort/i, networks: ['68.232.128.0/19'] },
  {
    name: 'Symantec Email Security',
    by: 'machine',
    networks: [
      '67.219.240.0/20',
      '85.158.136.0/21',
      '193.109.254.0/23',
      '195.245.230.0/23',
      '216.82.240.0/20',
    ],
  },
  { name: 'Trend Micro', by: 'machine', agent: /TrendMicro|TMSPS/i, networks: ['150.70.0.0/16'] },
  {
    name: 'Forcepoint',
    by: 'machine',
    networks: ['85.115.32.0/19', '86.111.216.0/21', '116.50.56.0/21', '208.87.232.0/21'],
  },
  {
    name: 'link previews',
    by: 'machine',
    agent:
      /facebookexternal(?:hit|ua)|WhatsApp\/|TelegramBot|Slackbot|Slack-ImgProxy|GoogleMessages\/|Snap URL Preview/,
  },
  {
    name: 'link checkers',
    by: 'machine',
    agent: /HubSpot Connect|^cortex\/|^Amazon CloudFront$|W3C-checklink/,
  },
  { name: 'crawlers', by: 'machine', agent: /bot\b|crawler|spider|Yahoo! Slurp|HeadlessChrome|PhantomJS/i },
]

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
  const note = (from: number, to: number) => {
    const url = html.slice(from, to).trim()
    if (isTracked(url)) urls.add(url)
  }
  let startsAt = 0
  readMarkup(new MarkupPlace(), html, {
    hrefBegins: at => (startsAt = at),
    hrefEnds: at => note(startsAt, at),
    outlookComment: (start, end) =>
      readOutlookLinks(html.slice(start, end), (from, to) => note(start + from, start + to)),
  })
  return urls.size
}

/** Links to our own pages are not tracked. */
function isTracked(url: string): boolean {
  if (/\{\{\s*(?:unsubscribe_url|preferences_url|view_url)\b/.test(url)) return false
  return /^https?:\/\//i.test(url) || url.startsWith('{{')
}
