/**
 * Tells visits by machines from visits by people: by known programs and networks, and by links followed faster than anybody reads.
 *
 * Called by `visit-counter.ts`, which reads ahead of what it counts, so that the first click of a burst is known for what it is as well.
 * Memory is bounded by time and number. Never throws.
 */
import { NetworkList } from '../../world/net/ip-address.js'
import { KNOWN_PROGRAMS } from './known-programs.js'
import type { Visit } from './visit.js'

/** Programs and addresses whose row is remembered. */
const MOST_REMEMBERED = 10_000

const ROWS = KNOWN_PROGRAMS.map(({ agent, networks }) => ({
  agent,
  networks: networks && new NetworkList(networks),
}))

const rowOfAgent = remembered(text => ROWS.findIndex(({ agent }) => agent?.test(text) ?? false))
const rowOfAddress = remembered(text => ROWS.findIndex(({ networks }) => networks?.contains(text) ?? false))

/** By HEAD, which no reader sends, by its User-Agent and by where it comes from. */
export function isKnownMachine({ isHead, userAgent, address }: Visit): boolean {
  if (isHead) return true
  const rows = [rowOfAgent(userAgent), rowOfAddress(address)].filter(row => row >= 0)
  return KNOWN_PROGRAMS[Math.min(...rows)]?.by === 'machine'
}

/** Most visits are by programs that were seen before, from networks that were. */
function remembered(find: (text: string) => number): (text: string) => number {
  const known = new Map<string, number>()
  return text => {
    const found = known.get(text)
    if (found !== undefined) return found
    if (known.size >= MOST_REMEMBERED) known.clear()
    const row = find(text)
    known.set(text, row)
    return row
  }
}

/** Clicks on a message within this time of each other are one burst. */
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

/** @returns undefined where that depends on how many links the mail has: `isNearlyAll` tells then */
export function isBurst(links: number, sinceDeliveryMs: number): boolean | undefined {
  if (links >= SOON.links && sinceDeliveryMs <= SOON.withinMs) return true
  if (links >= TOO_MANY_LINKS) return true
  return links >= NEARLY_ALL.links ? undefined : false
}

/** @param all different links of the mail; 0 where that is not known */
export function isNearlyAll(links: number, all: number): boolean {
  return all > 0 && links >= NEARLY_ALL.share * all
}

/** Messages whose clicks are remembered. */
const MOST_MESSAGES = 20_000
/** Clicks remembered of one message. */
const MOST_CLICKS = 50

interface Followed {
  readonly url: string
  readonly at: number
}

/** Which links of which message were followed in the last seconds. */
export class ClickBursts {
  /** The message clicked longest ago first. */
  private readonly clicks = new Map<string, Followed[]>()

  /**
   * Call it in the order of time.
   *
   * @param uncountedAt when the first visit that is still to be judged happened
   */
  note({ kind, messageId, url = '', at }: Visit, uncountedAt: number): void {
    if (kind !== 'click') return
    const recent = (this.clicks.get(messageId) ?? []).filter(click => uncountedAt - click.at <= BURST_MS)
    if (recent.length < MOST_CLICKS) recent.push({ url, at })
    this.clicks.delete(messageId)
    this.clicks.set(messageId, recent)
    const [oldest] = this.clicks.keys()
    if (this.clicks.size > MOST_MESSAGES && oldest !== undefined) this.clicks.delete(oldest)
  }

  /** @returns how many different links of the message were followed around that click; 0 for an open */
  linksAround({ kind, messageId, at }: Visit): number {
    if (kind !== 'click') return 0
    const near = (this.clicks.get(messageId) ?? []).filter(click => Math.abs(click.at - at) <= BURST_MS)
    return new Set(near.map(({ url }) => url)).size
  }
}
