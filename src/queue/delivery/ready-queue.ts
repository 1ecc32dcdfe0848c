/**
 * The ready queue: claimed messages that wait for a delivery of their site to end.
 *
 * Between the end of a delivery and the next claim lie a commit and a read, during which a fast site would be idle. Its
 * pace therefore prefetches a few messages, which wait here for about 50 ms. Slow sites have none.
 */
import { PRIORITIES } from '../../messages/mail-origin.js'
import type { Site, Turn } from '../pacing/site.js'

interface SiteSlots<T> {
  active: number
  readonly transactional: T[]
  readonly campaigns: T[]
  turns: number
}

/** As in the site's own queues: neither priority starves the other. */
const CAMPAIGN_TURN_EVERY = 4

export class ReadyQueue<T extends { readonly turn: Turn }> {
  private readonly places = new Map<Site, SiteSlots<T>>()

  /**
   * @returns `starts` now, `waits` until `finish` or a `take...` returns it, or `refused`: its site takes nothing now, and
   * no delivery may be left there whose end would start it
   */
  admit(item: T): 'starts' | 'waits' | 'refused' {
    const { site, lane } = item.turn
    const { concurrency } = site.pace
    if (concurrency === 0) return 'refused'
    const place = this.placeOf(site)
    if (place.active < concurrency) {
      place.active += 1
      return 'starts'
    }
    place[lane.priority === PRIORITIES.campaign ? 'campaigns' : 'transactional'].push(item)
    return 'waits'
  }

  /** Call it when a delivery of the site has ended. @returns messages that may start now */
  finish(site: Site): T[] {
    const place = this.placeOf(site)
    place.active -= 1
    const next: T[] = []
    while (place.active < site.pace.concurrency) {
      const item = nextOf(place)
      if (item === undefined) break
      place.active += 1
      next.push(item)
    }
    this.forgetIfEmpty(site, place)
    return next
  }

  /** Removes messages that wait for a site that backs off. */
  takeIfBackingOff(site: Site): T[] {
    const place = this.places.get(site)
    if (place === undefined || site.pace.concurrency > 0) return []
    return [...place.transactional.splice(0), ...place.campaigns.splice(0)]
  }

  takeWhere(isMeant: (item: T) => boolean): T[] {
    const taken: T[] = []
    for (const { transactional, campaigns } of this.places.values())
      for (const line of [transactional, campaigns])
        for (const item of line.splice(0)) (isMeant(item) ? taken : line).push(item)
    return taken
  }

  takeAll(): T[] {
    return this.takeWhere(() => true)
  }

  private placeOf(site: Site): SiteSlots<T> {
    const known = this.places.get(site)
    if (known) return known
    const place = { active: 0, transactional: [], campaigns: [], turns: 0 }
    this.places.set(site, place)
    return place
  }

  private forgetIfEmpty(site: Site, place: SiteSlots<T>): void {
    if (place.active === 0 && place.transactional.length === 0 && place.campaigns.length === 0)
      this.places.delete(site)
  }
}

function nextOf<T>(place: SiteSlots<T>): T | undefined {
  place.turns += 1
  const isCampaignTurn = place.turns % CAMPAIGN_TURN_EVERY === 0
  return isCampaignTurn
    ? (place.campaigns.shift() ?? place.transactional.shift())
    : (place.transactional.shift() ?? place.campaigns.shift())
}
