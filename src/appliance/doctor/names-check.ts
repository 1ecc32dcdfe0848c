/** Whether all living nodes publish the same names, as the database has them from the start of each (`cluster/published-name-store.ts`). */
import { listNodes } from '../../cluster/node-store.js'
import { listPublishedNames, type PublishedName, type Purpose } from '../../cluster/published-name-store.js'
import type { Appliance } from '../appliance.js'
import { publishedNamesOf } from '../published-names.js'
import { fail, ok, type Check } from './check.js'

const NAME = 'names'

/** The keys that set them; the hostname is each node's own. */
const KEYS: Readonly<Record<Exclude<Purpose, 'hostname'>, string>> = {
  public_url: 'public_url',
  reports: 'inbound.report_domain',
  return_path: 'mta.return_path_domain',
  dkim_zone: 'dns.dkim_zone',
}

/** Empty if there is only one node. */
export async function namesChecks({ config, database: { reader } }: Appliance): Promise<Check[]> {
  const own = publishedNamesOf(config)
  const living = new Set((await listNodes(reader)).map(({ name }) => name.toLowerCase()))
  const others = [...living].filter(name => name !== own.hostname)
  if (others.length === 0) return []
  const recorded = await listPublishedNames(reader)
  const checks = Object.entries(KEYS).flatMap(([key, setting]) => {
    const purpose = key as keyof typeof KEYS
    const used = [
      { node: own.hostname, name: own[purpose] },
      ...others.flatMap(node => latest(recorded, node, purpose) ?? []),
    ]
    if (new Set(used.map(({ name }) => name)).size === 1) return []
    return fail(
      NAME,
      `${setting} differs: ${used.map(({ node, name }) => `${name} on ${node}`).join(', ')}`,
      `set ${setting} to one name that leads to all nodes, the same on each, and restart them${noteOnMail(purpose)}`,
    )
  })
  return checks.length > 0
    ? checks
    : [ok(NAME, `${others.length + 1} nodes publish the same names: ${Object.values(KEYS).join(', ')}`)]
}

/** Mail to a former name is known (`inbound/inbound-address.ts`); former URLs and zones are not. */
function noteOnMail(purpose: Purpose): string {
  return purpose === 'reports' || purpose === 'return_path'
    ? '; mail to the former names is still accepted'
    : ''
}

/** @param recorded latest first */
function latest(
  recorded: readonly PublishedName[],
  node: string,
  purpose: Purpose,
): PublishedName | undefined {
  return recorded.find(one => one.node === node && one.purpose === purpose)
}
