/**
 * Asks whether links and images of a mail exist, a few at a time, within the egress policy.
 *
 * A link that answers with any status but 404 and 410, or refuses programs (401, 403, 405, 429), exists. Addresses that the policy refuses are
 * reported like those that do not answer, so that nothing is learnt about private networks. Never throws.
 */
import type { HttpClient } from '../../world/net/fetch.js'
import { finding, type CampaignFinding } from './findings.js'

const MAX_CHECKED = 50
const AT_ONCE = 5
const TIMEOUT_MS = 10_000
const MAX_REDIRECTS = 5
const GONE: ReadonlySet<number> = new Set([404, 410])
const HEADERS = { 'User-Agent': 'Postroad link check', Accept: '*/*' }

/** @param links and @param images absolute http(s) URLs */
export async function unreachable(
  http: HttpClient,
  links: readonly string[],
  images: readonly string[],
): Promise<CampaignFinding[]> {
  const asked = [
    ...links.map(url => ({ url, code: 'link_unreachable' as const })),
    ...images.map(url => ({ url, code: 'image_unreachable' as const })),
  ].slice(0, MAX_CHECKED)
  const found: CampaignFinding[] = []
  let next = 0
  const line = async () => {
    while (next < asked.length) {
      const one = asked[next++]
      const fault = one && (await faultOf(http, one.url))
      if (one && fault !== undefined) found.push(finding(one.code, fault, one.url))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, line))
  return found
}

async function faultOf(http: HttpClient, url: string): Promise<string | undefined> {
  let at = url
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1)
    try {
      const { status, headers } = await http.request({
        method: 'GET',
        url: at,
        headers: HEADERS,
        timeoutMs: TIMEOUT_MS,
        maxBytes: 1,
      })
      if (GONE.has(status)) return `The server answers ${status}: it is not there`
      if (status >= 500) return `The server answers ${status}`
      const location = headers['location']
      if (status < 300 || status >= 400 || location === undefined) return undefined
      if (!URL.canParse(location, at)) return 'It redirects to an invalid URL'
      at = new URL(location, at).href
    } catch {
      return 'The server cannot be reached'
    }
  return `It redirects more than ${MAX_REDIRECTS} times`
}
