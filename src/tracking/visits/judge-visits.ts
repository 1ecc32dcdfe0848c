/**
 * Tells visits by machines from those by people: by what is known of machines, and by what only machines do.
 *
 * Called by `visit-counter.ts`, which reads some time ahead of what it counts, so that also the first of many clicks is known for what
 * it is. Memory bounded by time and number. Fails: never throws.
 */
import { NetworkList } from '../../world/net/ip-address.js'
import { KNOWN_MACHINES } from './known-machines.js'
import type { Visit } from './visit.js'

const AGENTS = KNOWN_MACHINES.flatMap(({ agent }) => agent ?? [])
const NETWORKS = new NetworkList(KNOWN_MACHINES.flatMap(({ networks = [] }) => networks))

/** Names and addresses of which it is remembered what they are. */
const MOST_REMEMBERED = 10_000

const isMachineByName = remembered(userAgent => AGENTS.some(agent => agent.test(userAgent)))
const isMachineByAddress = remembered(address => NETWORKS.contains(address))

/** By what it says of itself and where it comes from. */
export function isKnownMachine({ isHead, userAgent, address }: Visit): boolean {
  return isHead || isMachineByName(userAgent) || isMachineByAddress(address)
}

/** Most visits are by programs that were seen before, from networks that were. */
function remembered(judge: (text: string) => boolean): (text: string) => boolean {
  const known = new Map<string, boolean>()
  return text => {
    const found = known.get(text)
    if (found !== undefined) return found
    if (known.size >= MOST_REMEMBERED) known.clear()
    const judged = judge(text)
    known.set(text, judged)
    return judged
  }
}

/** Within which one message's links are all followed by nobody who reads. */
export const BURST_MS = 1_000
/** Different links within that time. */
const BURST_LINKS = 3
/** A scanner comes when the mail does. */
const SOON_MS = 60_000
/** Messages of which clicks are remembered. */
const MOST_MESSAGES = 20_000
/** Of one message. */
const MOST_CLICKS = 50

interface Followed {
  readonly url: string
  readonly at: number
}

/** Which links of which message were followed in the last seconds. */
export class ClickBursts {
  /** The longest known first. */
  private readonly clicks = new Map<string, Followed[]>()

  /** In the order of time. */
  note({ kind, messageId, url = '', at }: Visit): void {
    if (kind !== 'click') return
    const recent = (this.clicks.get(messageId) ?? []).filter(click => at - click.at <= 2 * BURST_MS)
    if (recent.length < MOST_CLICKS) recent.push({ url, at })
    this.clicks.delete(messageId)
    this.clicks.set(messageId, recent)
    const [oldest] = this.clicks.keys()
    if (this.clicks.size > MOST_MESSAGES && oldest !== undefined) this.clicks.delete(oldest)
  }

  /** @param deliveredAt when the message reached its host; null where that is not known */
  isBurst({ kind, messageId, at }: Visit, deliveredAt: number | null): boolean {
    if (kind !== 'click' || deliveredAt === null || at - deliveredAt > SOON_MS) return false
    const near = (this.clicks.get(messageId) ?? []).filter(click => Math.abs(click.at - at) <= BURST_MS)
    return new Set(near.map(({ url }) => url)).size >= BURST_LINKS
  }
}
