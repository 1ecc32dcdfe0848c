/**
 * Whether the links in mail work: fetches `public_url` and checks that the public pages answer there.
 *
 * Used by `config check` and `doctor`. While the server does not run nobody can answer, and only the name is looked up. Looks names up as
 * the server does and may dial private addresses, since the operator named the URL. Asks for a path that is no page, so nothing is counted
 * or changed.
 * Fails: never; every failure is a result, within `FETCH_MS`.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { openResolver } from '../appliance/appliance.js'
import type { Config } from '../config/config.js'
import { describeError } from '../core/errors.js'
import { isServing } from '../db/sqlite/serve-lock.js'
import { openHostLookup, type HostLookup } from '../world/dns/host-lookup.js'
import { openHttpClient, type HttpResponse } from '../world/net/fetch.js'
import { ipVersion } from '../world/net/ip-address.js'
import type { World } from '../world/world.js'

/** `unclear`: no answer from here, which a router without NAT loopback or a slow name server also causes. */
export type PublicUrlCheck =
  | { readonly status: 'works'; readonly what: string }
  | { readonly status: 'dead' | 'unclear'; readonly what: string; readonly mend: string }

const FETCH_MS = 5_000
const MAX_BYTES = 16_384
/** Below a path of ours, so that a proxy which passes on only those passes this on too. */
const PROBE_PATH = '/u/postroad/check'

const LISTEN_MEND =
  'set http.public_listen_tls = ["[::]:443"], or have the web server there pass requests to http.public_listen (docs/tls.md)'

/** @returns undefined if the server does not run and the name of the URL may well be right */
export async function checkPublicUrl(config: Config, world: World): Promise<PublicUrlCheck | undefined> {
  const questions = new AbortController()
  const lookUp = openHostLookup(openResolver(config, world, questions.signal), world.systemLookup)
  const limit = world.clock.after(FETCH_MS, () => questions.abort())
  try {
    return isRunning(config.dataDir)
      ? await fetchPages(config, world, lookUp)
      : await findHost(config.publicUrl, lookUp)
  } finally {
    limit.cancel()
    questions.abort()
  }
}

/** Before the start nobody answers, but the name has to lead somewhere. */
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
      ? { status: 'works', what: `${publicUrl} shows the public pages` }
      : {
          status: 'dead',
          what: `${publicUrl} is answered by something else (${describeAnswer(answer)}): links in mail do not work`,
          mend: LISTEN_MEND,
        }
  } catch (error) {
    return failed(publicUrl, error)
  }
}

export function isRunning(dataDir: string): boolean {
  try {
    return existsSync(join(dataDir, 'serve.lock')) && isServing(dataDir)
  } catch {
    // This user cannot read the data folder; other findings say so.
    return false
  }
}

/** The error of the public pages: the API answers with the same code, but lets itself be indexed. */
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

/** Codes of Node's TLS for certificates that clients refuse. */
const CERTIFICATE_FAULT = /CERT|SELF_SIGNED|VERIFY|UNABLE_TO_GET_ISSUER|ALTNAME/

function failed(publicUrl: string, error: unknown): Exclude<PublicUrlCheck, { status: 'works' }> {
  const { host, hostname } = new URL(publicUrl)
  const { code = '' } = error as NodeJS.ErrnoException
  if (code === 'ENOTFOUND')
    return {
      status: 'dead',
      what: `${hostname} has no address in DNS: links in mail do not work`,
      mend: `publish an A record for ${hostname}, or change public_url`,
    }
  if (code === 'ECONNREFUSED')
    return {
      status: 'dead',
      what: `nothing listens at ${host}, where links in mail lead (${describeError(error)})`,
      mend: LISTEN_MEND,
    }
  if (CERTIFICATE_FAULT.test(code))
    return {
      status: 'dead',
      what: `browsers and mailbox providers refuse the certificate of ${publicUrl} (${describeError(error)})`,
      mend: 'set tls.acme, or tls.cert and tls.key to a certificate for that name (docs/tls.md)',
    }
  return {
    status: 'unclear',
    what: `${publicUrl} does not answer from this machine (${describeError(error)})`,
    mend: 'open it in a browser elsewhere; if it fails there too, look at DNS, the firewall and port forwarding',
  }
}
