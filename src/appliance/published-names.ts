/** The names that a configuration publishes, recorded at each start of a server (`cluster/published-name-store.ts`). */
import { recordPublishedNames, type PublishedNames } from '../cluster/published-name-store.js'
import type { Config } from '../config/config.js'
import type { Database } from '../db/database.js'

/** Where DMARC records ask for reports; this server accepts mail for it. */
export function reportAddressOf({ inbound }: Pick<Config, 'inbound'>): string {
  return `dmarc@${inbound.reportDomain.toLowerCase()}`
}

export function publishedNamesOf({ hostname, inbound, mta, dns, publicUrl }: Config): PublishedNames {
  const { origin, pathname } = new URL(publicUrl)
  return {
    hostname: hostname.toLowerCase(),
    reports: inbound.reportDomain.toLowerCase(),
    return_path: mta.returnPathDomain.toLowerCase(),
    dkim_zone: dns.dkimZone.toLowerCase(),
    public_url: `${origin}${pathname}`.replace(/\/$/, ''),
  }
}

export async function recordNamesOf(config: Config, database: Database, now: number): Promise<void> {
  const names = publishedNamesOf(config)
  await database.write(tx => recordPublishedNames(tx.db, names.hostname, names, now))
}
