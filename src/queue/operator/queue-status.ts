/** The sites of destinations, for commands and figures by site. Asks DNS directly, so its answer may be newer than what the queue uses. */
import type { LocateSite } from '../delivery-agent.js'

const MAX_LOOKUPS = 100

export async function locateAll(
  destinations: readonly string[],
  locateSite: LocateSite,
): Promise<Map<string, string>> {
  const sites = new Map<string, string>()
  const waiting = destinations.values()
  const locateNext = async (): Promise<void> => {
    for (const destination of waiting) sites.set(destination, (await locateSite(destination)).name)
  }
  await Promise.all(Array.from({ length: MAX_LOOKUPS }, locateNext))
  return sites
}

export async function destinationsOf(
  site: string,
  destinations: readonly string[],
  locateSite: LocateSite,
): Promise<string[]> {
  const sites = await locateAll(destinations, locateSite)
  return destinations.filter(destination => sites.get(destination) === site)
}
