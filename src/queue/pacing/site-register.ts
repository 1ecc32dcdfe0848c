/**
 * The sites known now, by name: those with mail, and for a while those of which something was learnt.
 *
 * Used by the schedule. Bounded: a site with nothing due and nothing under way is forgotten at once where nothing was learnt
 * of it, else when it has been idle for long, or when there are too many.
 */
import type { Clock } from '../../world/time/clock.js'
import type { SiteFacts } from '../delivery-agent.js'
import type { RestLengths } from './site-pace.js'
import { Site } from './site.js'

/** What the operator sees of a site. */
export interface SiteState {
  readonly name: string
  readonly active: number
  readonly window: number
  /** Ms since epoch UTC. */
  readonly restsUntil: number | undefined
}

export interface RegisterParts {
  readonly clock: Clock
  readonly rests: RestLengths
}

/** Longer than any rest and than an answer speaks for a site, so that what is forgotten would not count any more. */
const REMEMBERED_MS = 60 * 60_000
const MOST_IDLE = 20_000

export class SiteRegister {
  private readonly parts: RegisterParts
  private readonly sites = new Map<string, Site>()
  /** Since when (monotonic, ms) a site has been idle, longest first. */
  private readonly idle = new Map<Site, number>()

  constructor(parts: RegisterParts) {
    this.parts = parts
  }

  get size(): number {
    return this.sites.size
  }

  /** The site of this name, with what is known of it, or a new one. */
  open(facts: SiteFacts): Site {
    const known = this.sites.get(facts.name)
    if (known) {
      known.pace.setLimits(facts)
      return known
    }
    const site = new Site(this.parts.clock, facts, this.parts.rests)
    this.sites.set(site.name, site)
    return site
  }

  /** Call it whenever its mail or its pace has changed. */
  noteUse(site: Site): void {
    const isIdle = !site.hasDue && site.pace.isIdle
    if (!isIdle) this.idle.delete(site)
    else if (site.pace.isBlank) this.forget(site)
    else if (!this.idle.has(site)) this.idle.set(site, this.parts.clock.monotonic())
    this.forgetOldest()
  }

  list(): SiteState[] {
    const now = this.parts.clock.now()
    return [...this.sites.values()].flatMap(site => {
      const { restLeftMs, ...state } = site.pace.state
      const isOfInterest = site.hasDue || !site.pace.isIdle || restLeftMs !== undefined
      if (!isOfInterest) return []
      return [
        { name: site.name, ...state, restsUntil: restLeftMs === undefined ? undefined : now + restLeftMs },
      ]
    })
  }

  /** When the mail fell due that has waited longest at a site that may be served now; it goes through all lanes with mail due. */
  get oldestDueAt(): number | undefined {
    let oldest = Infinity
    for (const site of this.sites.values())
      if (site.hasDue && !site.pace.isResting) oldest = Math.min(oldest, site.oldestDueAt ?? Infinity)
    return oldest === Infinity ? undefined : oldest
  }

  /** All sites, or those that serve these destinations. */
  serving(
    destinations: ReadonlySet<string> | undefined,
    find: (destination: string) => SiteFacts | undefined,
  ): Set<Site> {
    if (!destinations) return new Set(this.sites.values())
    return new Set(
      [...destinations].flatMap(destination => this.sites.get(find(destination)?.name ?? '') ?? []),
    )
  }

  private forget(site: Site): void {
    this.idle.delete(site)
    if (this.sites.get(site.name) === site) this.sites.delete(site.name)
  }

  private forgetOldest(): void {
    const now = this.parts.clock.monotonic()
    for (const [site, since] of this.idle) {
      if (now - since < REMEMBERED_MS && this.idle.size <= MOST_IDLE) return
      this.forget(site)
    }
  }
}
