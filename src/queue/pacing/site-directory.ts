/**
 * Caches which site each destination belongs to and queues DNS lookups for unknown ones.
 *
 * Used by the schedule. Stale answers are used until a newer one arrives, so a known destination never waits. The
 * lookup queue is fair by priority and workspace, and new names are not stuck behind thousands whose servers do not
 * answer. Names cached and concurrent lookups are bounded. Never fails: if DNS does not answer, a destination is its
 * own site.
 */
import type { Clock } from '../../world/time/clock.js'
import type { LocateSite, SiteFacts } from '../delivery-agent.js'
import { FairQueue, type Claimant } from './fair-queue.js'

export interface DirectoryParts {
  readonly clock: Clock
  readonly locateSite: LocateSite
  readonly onLocated: (destination: string, facts: SiteFacts) => void
}

interface Known {
  readonly facts: SiteFacts
  /** Monotonic, ms. */
  readonly freshUntil: number
}

const FRESH_MS = 10 * 60_000
/** About 200 bytes each; the least recently used is evicted. */
const MAX_KNOWN = 50_000
const MAX_LOOKUPS = 100
/** Limit of concurrent lookups for campaigns and refreshes, which nobody waits for. */
const MAX_BULK_LOOKUPS = 75
const BACKGROUND: Claimant = { isBulk: true, workspaceId: '' }

export class SiteDirectory {
  private readonly parts: DirectoryParts
  /** Least recently used first. */
  private readonly known = new Map<string, Known>()
  private readonly queue = new FairQueue<string>('both ends')
  private readonly lookingUp = new Set<string>()
  private bulkLookups = 0

  constructor(parts: DirectoryParts) {
    this.parts = parts
  }

  /** The cached site; starts a refresh if it is stale. */
  find(destination: string): SiteFacts | undefined {
    const known = this.recall(destination)
    if (known && known.freshUntil <= this.parts.clock.monotonic()) this.lookUp(destination, BACKGROUND)
    return known?.facts
  }

  /** The cached site's name, however old; changes nothing. */
  nameOf(destination: string): string | undefined {
    return this.known.get(destination)?.facts.name
  }

  forgetAll(): void {
    this.known.clear()
  }

  /** Queues a lookup; `onLocated` reports the result. */
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
