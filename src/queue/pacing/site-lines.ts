/**
 * Where each site stands: in the line of its standing, among those that rest, with those that lack memory, or nowhere.
 *
 * Used by the schedule, which says whenever something about a site has changed; all that it is in follows from the site alone:
 *
 *   nothing due                       nowhere
 *   due, no free slot                 resting, where a moment is known when it may go on; else nowhere, until a delivery ends
 *   due, a free slot                  in the line of its standing, on behalf of each workspace with mail that may begin
 *   large mail due, no memory for it  among those lacking memory, whatever its small mail makes of it
 */
import { KeyedHeap } from '../../core/keyed-heap.js'
import { STANDINGS, type Standing } from './connection-shares.js'
import { FairLine } from './fair-line.js'
import type { Site } from './site.js'

export class SiteLines {
  private readonly hasMemoryFor: (site: Site) => boolean
  private readonly lines: Readonly<Record<Standing, FairLine<Site>>> = {
    new: new FairLine('both ends'),
    proven: new FairLine('oldest'),
    doubtful: new FairLine('oldest'),
  }
  /** By the moment on the monotonic clock when they may go on. */
  private readonly resting = new KeyedHeap<Site>()
  private readonly lackingMemory = new Set<Site>()

  constructor(hasMemoryFor: (site: Site) => boolean) {
    this.hasMemoryFor = hasMemoryFor
  }

  /** The first moment on the monotonic clock when a rest ends. */
  get nextRestEnd(): number | undefined {
    return this.resting.nextKey
  }

  /** How many sites wait in this line. */
  waiting(standing: Standing): number {
    return this.lines[standing].size
  }

  /** Whether somebody waits in this line; for campaigns alone does not count where they may not. */
  hasWaiting(standing: Standing, mayBulk: boolean): boolean {
    return this.lines[standing].hasWaiting(mayBulk)
  }

  /** Takes out whose turn it is; to be placed again afterwards. */
  next(standing: Standing, mayBulk: boolean): Site | undefined {
    return this.lines[standing].next(mayBulk)?.item
  }

  /** Takes out one whose rest is over; to be placed again. */
  takeRested(now: number): Site | undefined {
    return this.resting.popUpTo(now)
  }

  /** Takes out all that lack memory; to be placed again. */
  takeLackingMemory(): readonly Site[] {
    const sites = [...this.lackingMemory]
    this.lackingMemory.clear()
    return sites
  }

  /** Puts it where it belongs now, and out of everything else. */
  place(site: Site): void {
    for (const standing of STANDINGS) this.lines[standing].delete(site)
    this.resting.delete(site)
    this.lackingMemory.delete(site)
    if (!site.hasDue) return
    if (site.pace.freeSlots === 0) {
      const { retryAt } = site.pace
      if (retryAt !== undefined) this.resting.set(site, retryAt)
      return
    }
    const large = site.hasLargeDue && this.hasMemoryFor(site)
    if (site.hasLargeDue && !large) this.lackingMemory.add(site)
    const line = this.lines[site.pace.standing]
    for (const claimant of site.claimants({ bulk: true, large })) line.add(site, claimant)
  }
}
