/**
 * One attempt to tell a receiver of an event: the request as it is sent, and what came of it, as a value.
 *
 * Called by the delivery worker and for tests of a subscription; knows no database. Nothing in an answer is followed or believed but
 * its status and Retry-After. Fails: never; what went wrong on the way is an answer of status 0.
 */
import { VERSION } from '../../core/version.js'
import { describeError } from '../../core/errors.js'
import type { HttpClient } from '../../world/net/fetch.js'
import type { Clock } from '../../world/time/clock.js'
import { readRetryAfter } from './retry-schedule.js'
import { signatureFields } from './signature.js'

/** For everything from the look-up to the end of the answer. */
export const ATTEMPT_MS = 15_000
/** Of an answer's body: what is kept, and what is read so that its connection can be used again. */
const RESPONSE_OCTETS = 1_024
const READ_OCTETS = 16_384
const MOST_ERROR = 300

/** What one request is made of. */
export interface Telling {
  readonly deliveryId: string
  readonly subscriptionId: string
  readonly event: string
  readonly targetUrl: string
  /** JSON. */
  readonly body: string
  /** Opened, the newest first. */
  readonly secrets: readonly string[]
}

export interface AttemptResult {
  /** Ms since epoch UTC. */
  readonly startedAt: number
  readonly durationMs: number
  /** 0 where there was no answer. */
  readonly statusCode: number
  /** Why there was none. */
  readonly error: string | null
  /** The beginning of the answer's body, as text. */
  readonly response: string | null
  readonly retryAfterMs?: number
}

export interface AttemptParts {
  readonly http: HttpClient
  readonly clock: Clock
}

/** 2xx; a redirect is none, for nobody follows it. */
export function isSuccess({ statusCode }: Pick<AttemptResult, 'statusCode'>): boolean {
  return statusCode >= 200 && statusCode < 300
}

export async function attempt({ http, clock }: AttemptParts, telling: Telling): Promise<AttemptResult> {
  const startedAt = clock.now()
  const since = clock.monotonic()
  const durationMs = () => Math.max(0, Math.round(clock.monotonic() - since))
  try {
    const { status, headers, body } = await http.request({
      method: 'POST',
      url: telling.targetUrl,
      headers: requestFields(telling, Math.floor(startedAt / 1_000)),
      body: telling.body,
      timeoutMs: ATTEMPT_MS,
      maxBytes: READ_OCTETS,
    })
    const retryAfterMs = readRetryAfter(headers['retry-after'], clock.now())
    return {
      startedAt,
      durationMs: durationMs(),
      statusCode: status,
      error: null,
      response: body.length === 0 ? null : asText(body.subarray(0, RESPONSE_OCTETS)),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    }
  } catch (error) {
    const text = asText(Buffer.from(whyNot(error))).slice(0, MOST_ERROR)
    return { startedAt, durationMs: durationMs(), statusCode: 0, error: text, response: null }
  }
}

/** As they are shown in the log of deliveries; the signatures come on top. */
export function openFields(telling: Pick<Telling, 'event' | 'deliveryId' | 'subscriptionId'>) {
  return {
    'Content-Type': 'application/json',
    'User-Agent': `Postroad/${VERSION}`,
    'X-Service-Event': telling.event,
    'X-Service-Delivery-Id': telling.deliveryId,
    'X-Service-Webhook-Id': telling.subscriptionId,
  }
}

function requestFields(telling: Telling, timestamp: number): Record<string, string> {
  const { deliveryId, body, secrets } = telling
  return {
    ...openFields(telling),
    'Content-Length': String(Buffer.byteLength(body)),
    ...signatureFields({ deliveryId, timestamp, body }, secrets),
  }
}

/** Of several addresses that were tried in vain each has an error of its own. */
function whyNot(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return [...new Set(error.errors.map(describeError))].join('; ')
  return describeError(error)
}

/** What both databases keep as text: no NUL, no half characters. */
function asText(octets: Buffer): string {
  return octets.toString('utf8').replaceAll('\0', '\u{fffd}')
}
