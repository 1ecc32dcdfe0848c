/**
 * Queued destinations by the site that serves them, as the schedule would see them.
 *
 * Called by commands, which ask DNS themselves: the answer is what holds now, and the running server may still go by what
 * it found some minutes ago. Never dials. Fails: never; a destination that DNS is silent about is a site by itself.
 */
import type { LocateSite } from '../delivery-agent.js'

/** Destinations asked for at the same time. */
const LOCATING_AT_ONCE = 100

/** @returns site name by destination */
export async function locateAll(
  destinations: readonly string[],
  locateSite: LocateSite,
): Promise<Map<string, string>> {
  const sites = new Map<string, string>()
  const waiting = destinations.values()
  const locateNext = async (): Promise<void> => {
    for (const destination of waiting) sites.set(destination, (await locateSite(destination)).name)
  }
  await Promise.all(Array.from({ length: LOCATING_AT_ONCE }, locateNext))
  return sites
}

/** The destinations of one site, in the order given. */
export async function destinationsOf(
  site: string,
  destinations: readonly string[],
  locateSite: LocateSite,
): Promise<string[]> {
  const sites = await locateAll(destinations, locateSite)
  return destinations.filter(destination => sites.get(destination) === site)
}
