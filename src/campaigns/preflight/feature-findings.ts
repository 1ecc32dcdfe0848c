/** Features of a mail that the clients in which this audience reads lack. Pure. */
import { featureOf, type ClientFeature } from '../../content/clients/client-features.js'
import { CLIENT_NAMES, isMailClient } from '../../content/clients/mail-clients.js'
import { finding, type CampaignFinding } from './findings.js'

/** Fewer say nothing about an audience. */
const MIN_OPENS = 20
/** Those that concern most. */
const MAX_FEATURES = 30

/**
 * @param slugs of features that the mail uses
 * @param opens by people, by client; those of clients that cannot be told are `other`
 */
export function featureFindings(
  slugs: readonly string[],
  opens: ReadonlyMap<string, number>,
): CampaignFinding[] {
  const total = [...opens.values()].reduce((sum, count) => sum + count, 0)
  const used = slugs.flatMap(slug => featureOf(slug) ?? [])
  const found =
    total < MIN_OPENS ? used.map(inAnyClient) : used.flatMap(feature => amongOpens(feature, opens, total))
  return found.toSorted((one, other) => reach(other) - reach(one)).slice(0, MAX_FEATURES)
}

function reach({ opensShare, clients = [] }: CampaignFinding): number {
  return opensShare ?? clients.length
}

function inAnyClient({ name, lacking }: ClientFeature): CampaignFinding {
  const clients = lacking.map(client => CLIENT_NAMES[client])
  return { ...finding('feature_unsupported', `Not supported by ${clients.join(', ')}`, name), clients }
}

function amongOpens(
  { name, lacking }: ClientFeature,
  opens: ReadonlyMap<string, number>,
  total: number,
): CampaignFinding[] {
  const concerned = [...opens]
    .filter(([client, count]) => count > 0 && isMailClient(client) && lacking.includes(client))
    .toSorted(([, one], [, other]) => other - one)
  if (concerned.length === 0) return []
  const clients = concerned.flatMap(([client]) => (isMailClient(client) ? [CLIENT_NAMES[client]] : []))
  const opensShare = concerned.reduce((sum, [, count]) => sum + count, 0) / total
  const percent = Math.max(1, Math.round(100 * opensShare))
  const message = `Not supported by ${clients.join(', ')}, which make ${percent} % of your opens`
  return [{ ...finding('feature_unsupported', message, name), clients, opensShare }]
}
