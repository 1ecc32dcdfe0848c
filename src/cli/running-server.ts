/**
 * Asks the server that runs on the same data folder, over HTTP on this machine: for what it holds in memory only.
 *
 * Called by `top` and `queue retry`. Everything else that commands and server share is in the database. Fails: never
 * rejects; that nobody serves or answers is a value.
 */
import type { Appliance } from '../appliance.js'
import type { Config } from '../config/config.js'
import { describeError } from '../core/errors.js'
import { isServing } from '../db/serve-lock.js'
import { openHttpClient } from '../world/fetch.js'
import { isLoopbackOrUnspecified } from '../world/address-kind.js'
import { ipVersion } from '../world/ip-address.js'

const ANSWER_TIMEOUT_MS = 2_000
const ANSWER_BYTES = 4 * 1_024 * 1_024

export interface ServerAnswer {
  /** Whether a server runs on the data folder. */
  readonly serving: boolean
  /** `data` of its answer; undefined where there is trouble. */
  readonly data?: unknown
  readonly trouble: string | null
}

/** @param body sent as JSON */
export async function askServer(
  { config, world: { clock } }: Pick<Appliance, 'config' | 'world'>,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<ServerAnswer> {
  if (!isServing(config.dataDir)) return { serving: false, trouble: 'the server does not run' }
  const origin = loopbackOrigin(config)
  if (origin === undefined)
    return { serving: true, trouble: 'http.listen has no address of this machine with a known port' }
  try {
    const answer = await openHttpClient(clock).request({
      namedBy: 'operator',
      method,
      url: `${origin}${path}`,
      ...(body === undefined ? {} : jsonBody(body)),
      timeoutMs: ANSWER_TIMEOUT_MS,
      maxBytes: ANSWER_BYTES,
    })
    if (answer.status !== 200) return { serving: true, trouble: `the server answered ${answer.status}` }
    const { data } = JSON.parse(answer.body.toString()) as { data: unknown }
    return { serving: true, data, trouble: null }
  } catch (error) {
    return { serving: true, trouble: `the server did not answer: ${describeError(error)}` }
  }
}

function jsonBody(value: unknown) {
  const body = JSON.stringify(value)
  const length = String(Buffer.byteLength(body))
  return { body, headers: { 'content-type': 'application/json', 'content-length': length } }
}

/** Of the first address that can be reached from this machine by loopback; such routes answer no other. */
function loopbackOrigin({ http }: Config): string | undefined {
  for (const { host, port } of http.listen) {
    if (port === 0) continue
    if (host === 'localhost') return `http://localhost:${port}`
    if (!isLoopbackOrUnspecified(host)) continue
    if (ipVersion(host) === 6) return `http://[::1]:${port}`
    return `http://${host === '0.0.0.0' ? '127.0.0.1' : host}:${port}`
  }
  return undefined
}
