/**
 * Queries the server running on the same data folder through its control socket, for state that only exists in memory.
 *
 * Used by `top` and `queue retry`. All other state is in the database. Never rejects; a server that is not running or does not answer is a
 * result.
 */
import type { Appliance } from '../appliance/appliance.js'
import { controlSocketPath } from '../appliance/listeners/control.js'
import { describeError } from '../core/errors.js'
import { isServing } from '../db/sqlite/serve-lock.js'
import { openHttpClient } from '../world/net/fetch.js'

const ANSWER_TIMEOUT_MS = 2_000
const ANSWER_BYTES = 4 * 1_024 * 1_024

export interface ServerAnswer {
  /** Whether a server is running on the data folder. */
  readonly serving: boolean
  /** `data` of the response; undefined if there is `trouble`. */
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
  if (!isServing(config.dataDir)) return { serving: false, trouble: 'the server is not running' }
  try {
    const answer = await openHttpClient(clock).request({
      namedBy: 'operator',
      method,
      // The host is ignored: the socket leads to one server.
      url: `http://localhost${path}`,
      socketPath: controlSocketPath(config.dataDir),
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
