/**
 * Which site each destination belongs to: what was found is remembered, what is unknown stands in line for DNS.
 *
 * Used by the schedule. A destination that is known never stands in that line: when its answer has grown old it is believed
 * until a newer one has come. The line is fair by priority and workspace, and what has just come is not behind thousands of
 * names that no server answers for. Bounded: names remembered, and names asked for at once; those that wait are lanes with
 * mail due. Fails: never; a destination that DNS is silent about is a site by itself.
 */
import type { Clock } from '../../world/time/clock.js'
import type { LocateSite, SiteFacts } from '../delivery-agent.js'
import { FairQueue, type Claimant } from './fair-queue.js'

export interface DirectoryParts {
  readonly clock: Clock
  readonly locateSite: LocateSite
  /** A destination that somebody waited for is known now. */
  readonly onLocated: (destination: string, facts: SiteFacts) => void
}

interface Known {
  readonly facts: SiteFacts
  /** On the monotonic clock, ms. */
  readonly freshUntil: number
}

/** How long a destination's site is believed without asking anew. */
const FRESH_MS = 10 * 60_000
/** The one used longest ago gives way; some 200 octets each. */
const MAX_KNOWN = 50_000
/** Destinations asked for at the same time; the rest waits its turn. */
const MAX_LOOKUPS = 100
/** Of those for campaigns and for answers that have grown old, which nobody waits for. */
const MAX_BULK_LOOKUPS = 75
const BACKGROUND: Claimant = { isBulk: true, workspaceId: '' }

export class SiteDirectory {
  private readonly parts: DirectoryParts
  /** The one used longest ago first. */
  private readonly known = new Map<string, Known>()
  private readonly queue = new FairQueue<string>('both ends')
  private readonly lookingUp = new Set<string>()
  private bulkLookups = 0

  constructor(parts: DirectoryParts) {
    this.parts = parts
  }

  /** Its site as far as that is known; an answer that has grown old is asked for anew, and used meanwhile. */
  find(destination: string): SiteFacts | undefined {
    const known = this.recall(destination)
    if (known && known.freshUntil <= this.parts.clock.monotonic()) this.lookUp(destination, BACKGROUND)
    return known?.facts
  }

  /** How sites are told apart has changed: what is known is believed no longer, but where nobody can be asked at once. */
  forgetAll(): void {
    this.known.clear()
  }

  /** Stands in line for it; `onLocated` tells. */
  lookUp(destination: string, claimant: Claimant): void {
    if (this.lookingUp.has(destination)) return
    this.queue.add(destination, claimant)
    this.startLookups()
  }

  private recall(destination: string): Known | undefined {
    const known = this.known.get(destination)
    if (!known) return undefined
    this.known.delete(destination)
    this.known.set(destination, known)
    return known
  }

  private startLookups(): void {
    while (this.lookingUp.size < MAX_LOOKUPS) {
      const next = this.queue.next(this.bulkLookups < MAX_BULK_LOOKUPS)
      if (next === undefined) return
      void this.locate(next.item, next.isBulk)
    }
  }

  private async locate(destination: string, isBulk: boolean): Promise<void> {
    this.lookingUp.add(destination)
    if (isBulk) this.bulkLookups += 1
    const facts = await this.parts.locateSite(destination)
    this.lookingUp.delete(destination)
    if (isBulk) this.bulkLookups -= 1
    this.remember(destination, facts)
    this.parts.onLocated(destination, facts)
    this.startLookups()
  }

  private remember(destination: string, facts: SiteFacts): void {
    this.known.delete(destination)
    this.known.set(destination, { facts, freshUntil: this.parts.clock.monotonic() + FRESH_MS })
    const eldest = this.known.size > MAX_KNOWN ? this.known.keys().next().value : undefined
    if (eldest !== undefined) this.known.delete(eldest)
  }
}
