/**
 * Gets a domain's MTA-STS policy from its web server.
 *
 * Called by `mta-sts.ts`. Never keeps anything and never follows a redirect. Standards: RFC 8461 §3.2 (where), §3.3 (how:
 * HTTPS with a certificate for the policy host, 200, 64 KB). Fails: never rejects; what went wrong is told.
 */
import { describeError } from '../../core/errors.js'
import type { Clock } from '../../world/time/clock.js'
import type { Resolver } from '../../world/dns/dns.js'
import type { HttpClient, HttpResponse } from '../../world/net/fetch.js'
import { findAddresses } from './host-addresses.js'
import { readStsPolicy, type StsPolicy } from './mta-sts-policy.js'

export interface StsFetchParts {
  readonly clock: Clock
  readonly resolver: Resolver
  readonly http: HttpClient
}

export type StsFetch = { readonly policy: StsPolicy } | { readonly problem: string }

/**
 * RFC 8461 §3.3 suggests a minute; but mail waits meanwhile, with a place in the queue that others want, and a web server that
 * takes longer for a few lines has fallen silent.
 */
const TIMEOUT_MS = 10_000
/** RFC 8461 §3.3. */
const MOST_BYTES = 65_536

/** @param domain A-labels, lower case */
export async function fetchStsPolicy(parts: StsFetchParts, domain: string): Promise<StsFetch> {
  const host = `mta-sts.${domain}`
  const { addresses, problem } = await findAddresses(parts.resolver, host)
  if (addresses.length === 0) return { problem: problem ?? `${host} has no address` }
  return request(parts, host, addresses)
}

/** One address after the other, since one family may not work from here; the time is for all of them. */
async function request(
  { clock, http }: StsFetchParts,
  host: string,
  addresses: readonly string[],
): Promise<StsFetch> {
  const endsAt = clock.monotonic() + TIMEOUT_MS
  let problem = 'not reached'
  for (const [index, address] of addresses.entries()) {
    const leftMs = endsAt - clock.monotonic()
    try {
      return readResponse(
        await http.request({
          method: 'GET',
          url: `https://${host}/.well-known/mta-sts.txt`,
          address,
          timeoutMs: Math.floor(leftMs / (addresses.length - index)),
          maxBytes: MOST_BYTES,
        }),
      )
    } catch (error) {
      problem = describeError(error)
    }
  }
  return { problem: `${host}: ${problem}` }
}

function readResponse({ status, headers, body, isTruncated }: HttpResponse): StsFetch {
  // RFC 8461 §3.3: only 200; a redirect must not be followed.
  if (status !== 200) return { problem: `the policy host answered ${status}` }
  const mediaType = (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase()
  // RFC 8461 §3.2: whoever may upload pictures to a web server must not be able to upload a policy.
  if (mediaType !== 'text/plain') return { problem: 'the policy is not text/plain' }
  if (isTruncated) return { problem: 'the policy is longer than 64 KB' }
  const text = decode(body)
  if (text === undefined) return { problem: 'the policy is not UTF-8' }
  const reading = readStsPolicy(text)
  return 'policy' in reading ? reading : { problem: `the policy is malformed: ${reading.fault}` }
}

function decode(body: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}
