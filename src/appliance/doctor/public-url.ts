/**
 * Whether links in mail work: fetches `public_url` and verifies that the public pages answer.
 *
 * Used by `config check` and the doctor. Fails: never; every failure is a result.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/config.js'
import { describeError } from '../../core/errors.js'
import { isServing as isLocked } from '../../db/sqlite/serve-lock.js'
import { openHostLookup } from '../../world/dns/host-lookup.js'
import { type HostLookup, type HttpResponse, openHttpClient } from '../../world/net/fetch.js'
import { ipVersion } from '../../world/net/ip-address.js'
import type { World } from '../../world/world.js'
import { openResolver } from '../appliance.js'

/** `unclear`: no answer from this machine, which can also be due to a router without NAT loopback or a slow name server. */
export type PublicUrlCheck =
  | { readonly status: 'works'; readonly what: string }
  | { readonly status: 'dead' | 'unclear'; readonly what: string; readonly fix: string }

const FETCH_MS = 5_000
const MAX_BYTES = 16_384
/** Below a path of the public pages, so that a proxy that forwards only those forwards this too. */
const PROBE_PATH = '/u/postroad/check'

const LISTEN_FIX =
  'set http.public_listen_tls = ["[::]:443"], or have the web server there pass requests to http.public_listen (docs/tls.md)'

/**
 * Checks that links in mail work: fetches `public_url` and verifies that the public pages answer.
 *
 * Only resolves the name if the server is not running. May connect to private addresses, since the operator chose the URL. Requests a path
 * without a page, so nothing is counted or changed. Never throws; every failure is a result, within `FETCH_MS`.
 *
 * @returns undefined if the server is not running and the name resolves or cannot be checked
 */
export async function checkPublicUrl(
  config: Config,
  world: World,
  isServing = isRunning(config.dataDir),
): Promise<PublicUrlCheck | undefined> {
  const questions = new AbortController()
  const lookUp = openHostLookup(openResolver(config, world, questions.signal), world.systemLookup)
  const limit = world.clock.after(FETCH_MS, () => questions.abort())
  try {
    return isServing ? await fetchPages(config, world, lookUp) : await findHost(config.publicUrl, lookUp)
  } finally {
    limit.cancel()
    questions.abort()
  }
}

/** Before the server starts only the name can be checked. */
async function findHost(publicUrl: string, lookUp: HostLookup): Promise<PublicUrlCheck | undefined> {
  const { hostname } = new URL(publicUrl)
  if (ipVersion(hostname.replace(/^\[|\]$/g, '')) !== 0) return undefined
  try {
    await lookUp(hostname)
    return undefined
  } catch (error) {
    const found = failed(publicUrl, error)
    return found.status === 'dead' ? found : undefined
  }
}

async function fetchPages(
  { publicUrl }: Config,
  { clock }: World,
  lookUp: HostLookup,
): Promise<PublicUrlCheck> {
  try {
    const answer = await openHttpClient(clock, { lookUp }).request({
      namedBy: 'operator',
      method: 'GET',
      url: publicUrl + PROBE_PATH,
      headers: { Accept: 'application/json' },
      timeoutMs: FETCH_MS,
      maxBytes: MAX_BYTES,
    })
    return isOurs(answer)
      ? { status: 'works', what: `${publicUrl} serves the public pages` }
      : {
          status: 'dead',
          what: `${publicUrl} is answered by something else (${describeAnswer(answer)}): links in mail do not work`,
          fix: LISTEN_FIX,
        }
  } catch (error) {
    return failed(publicUrl, error)
  }
}

export function isRunning(dataDir: string): boolean {
  try {
    return existsSync(join(dataDir, 'serve.lock')) && isLocked(dataDir)
  } catch {
    // This user cannot read the data folder, which other findings report.
    return false
  }
}

/** Matches the error of the public pages; the API answers with the same code but without `noindex`. */
function isOurs({ headers, body }: HttpResponse): boolean {
  if (headers['x-robots-tag'] !== 'noindex, nofollow') return false
  try {
    const { error } = JSON.parse(body.toString()) as { error?: { code?: unknown } }
    return typeof error?.code === 'string'
  } catch {
    return false
  }
}

function describeAnswer({ status, headers: { location, server } }: HttpResponse): string {
  const from = server === undefined ? '' : ` from ${server.slice(0, 60)}`
  return `status ${status}${from}${location === undefined ? '' : `, redirects to ${location.slice(0, 200)}`}`
}

/** Node's TLS error codes for certificates that clients reject. */
const CERTIFICATE_FAULT = /CERT|SELF_SIGNED|VERIFY|UNABLE_TO_GET_ISSUER|ALTNAME/

function failed(publicUrl: string, error: unknown): Exclude<PublicUrlCheck, { status: 'works' }> {
  const { host, hostname } = new URL(publicUrl)
  const { code = '' } = error as NodeJS.ErrnoException
  if (code === 'ENOTFOUND')
    return {
      status: 'dead',
      what: `${hostname} has no address in DNS: links in mail do not work`,
      fix: `publish an A record for ${hostname}, or change public_url`,
    }
  if (code === 'ECONNREFUSED')
    return {
      status: 'dead',
      what: `nothing listens at ${host}, where links in mail lead (${describeError(error)})`,
      fix: LISTEN_FIX,
    }
  if (CERTIFICATE_FAULT.test(code))
    return {
      status: 'dead',
      what: `browsers and mailbox providers refuse the certificate of ${publicUrl} (${describeError(error)})`,
      fix: 'set tls.acme, or tls.cert and tls.key to a certificate for that name (docs/tls.md)',
    }
  return {
    status: 'unclear',
    what: `${publicUrl} does not answer from this machine (${describeError(error)})`,
    fix: 'open it in a browser elsewhere; if that fails too, check DNS, the firewall and port forwarding',
  }
}
