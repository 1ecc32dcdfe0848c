/**
 * One webhook attempt: sends the request and returns the result.
 *
 * Used by the delivery worker and test deliveries; knows no database. Of a response only the status and Retry-After have any effect;
 * redirects are not followed. Never throws: a failure to connect or read is a result with status 0.
 */
import { VERSION } from '../../core/version.js'
import { describeError } from '../../core/errors.js'
import type { HttpClient } from '../../world/net/fetch.js'
import type { Clock } from '../../world/time/clock.js'
import { readRetryAfter } from './retry-schedule.js'
import { signatureFields } from './signature.js'

/** From the DNS lookup to the end of the response. */
export const ATTEMPT_MS = 15_000
/** Octets of a response body that are kept, and that are read so that the connection can be reused. */
const RESPONSE_OCTETS = 1_024
const READ_OCTETS = 16_384
const MAX_ERROR_CHARS = 300

export interface WebhookRequest {
  readonly deliveryId: string
  readonly subscriptionId: string
  readonly event: string
  readonly targetUrl: string
  /** JSON. */
  readonly body: string
  /** In plain text, newest first. */
  readonly secrets: readonly string[]
}

export interface AttemptResult {
  /** Ms since epoch UTC. */
  readonly startedAt: number
  readonly durationMs: number
  /** 0 if there was no response. */
  readonly statusCode: number
  readonly error: string | null
  /** Start of the response body, as text. */
  readonly response: string | null
  readonly retryAfterMs?: number
}

export interface AttemptParts {
  readonly http: HttpClient
  readonly clock: Clock
}

/** 2xx only: redirects are not followed. */
export function isSuccess({ statusCode }: Pick<AttemptResult, 'statusCode'>): boolean {
  return statusCode >= 200 && statusCode < 300
}

export async function attempt(
  { http, clock }: AttemptParts,
  request: WebhookRequest,
): Promise<AttemptResult> {
  const startedAt = clock.now()
  const since = clock.monotonic()
  const durationMs = () => Math.max(0, Math.round(clock.monotonic() - since))
  try {
    const { status, headers, body } = await http.request({
      method: 'POST',
      url: request.targetUrl,
      headers: requestFields(request, Math.floor(startedAt / 1_000)),
      body: request.body,
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
    const text = asText(Buffer.from(describeFailure(error))).slice(0, MAX_ERROR_CHARS)
    return { startedAt, durationMs: durationMs(), statusCode: 0, error: text, response: null }
  }
}

/** Header fields shown in the delivery log: all but the signatures. */
export function openFields(request: Pick<WebhookRequest, 'event' | 'deliveryId' | 'subscriptionId'>) {
  return {
    'Content-Type': 'application/json',
    'User-Agent': `Postroad/${VERSION}`,
    'X-Service-Event': request.event,
    'X-Service-Delivery-Id': request.deliveryId,
    'X-Service-Webhook-Id': request.subscriptionId,
  }
}

function requestFields(request: WebhookRequest, timestamp: number): Record<string, string> {
  const { deliveryId, body, secrets } = request
  return {
    ...openFields(request),
    'Content-Length': String(Buffer.byteLength(body)),
    ...signatureFields({ deliveryId, timestamp, body }, secrets),
  }
}

/** If several addresses failed, joins their errors. */
function describeFailure(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return [...new Set(error.errors.map(describeError))].join('; ')
  return describeError(error)
}

/** Text that both databases accept: no NUL, no broken UTF-8. */
function asText(octets: Buffer): string {
  return octets.toString('utf8').replaceAll('\0', '\u{fffd}')
}
