/**
 * One webhook attempt: signs and sends the request, returns the result, and says when to retry.
 *
 * Used by the delivery worker and test deliveries; knows no database. Of a response only the status and Retry-After have any effect;
 * redirects are not followed. Never throws: a failure to connect or read is a result with status 0.
 * Standards: Standard Webhooks 1.0; RFC 9110 §10.2.3 (Retry-After), §15.5.11 (410 Gone).
 */
import { VERSION } from '../../core/version.js'
import { describeError } from '../../core/errors.js'
import type { HttpClient } from '../../world/net/fetch.js'
import type { Clock } from '../../world/time/clock.js'
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Random } from '../../world/random.js'
import { JITTER } from '../../core/backoff.js'

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
  /** Header field of the request; null if none was made, or it was by a version that did not record it. */
  readonly userAgent: string | null
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
      userAgent: USER_AGENT,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    }
  } catch (error) {
    const text = asText(Buffer.from(describeFailure(error))).slice(0, MAX_ERROR_CHARS)
    return {
      startedAt,
      durationMs: durationMs(),
      statusCode: 0,
      error: text,
      response: null,
      userAgent: USER_AGENT,
    }
  }
}

const USER_AGENT = `Postroad/${VERSION}`

/**
 * Header fields shown in the delivery log: all but the signatures.
 *
 * @param userAgent null if it is not known: left out
 */
export function openFields(
  request: Pick<WebhookRequest, 'event' | 'deliveryId' | 'subscriptionId'>,
  userAgent: string | null,
): Record<string, string> {
  return {
    'Content-Type': 'application/json',
    ...(userAgent === null ? {} : { 'User-Agent': userAgent }),
    'X-Service-Event': request.event,
    'X-Service-Delivery-Id': request.deliveryId,
    'X-Service-Webhook-Id': request.subscriptionId,
  }
}

function requestFields(request: WebhookRequest, timestamp: number): Record<string, string> {
  const { deliveryId, body, secrets } = request
  return {
    ...openFields(request, USER_AGENT),
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

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

/** @returns `whsec_` and 32 random bytes in base64 */
export function newSecret(random: Random): string {
  return PREFIX + random.bytes(SECRET_BYTES).toString('base64')
}

export interface Signed {
  readonly deliveryId: string
  /** Time of the attempt, unix seconds. */
  readonly timestamp: number
  readonly body: string
}

/**
 * Two signatures, so that a receiver can use whichever its library supports:
 * `X-Service-Signature: t=<unix seconds>,v1=<hex>`, HMAC-SHA256 of `<t>.<body>` keyed with the whole secret as text, and
 * `webhook-signature: v1,<base64>`, HMAC-SHA256 of `<id>.<t>.<body>` keyed with the decoded bytes after `whsec_`.
 * After a rotation each also carries one made with the previous secret.
 *
 * @param secrets newest first
 */
export function signatureFields(
  { deliveryId, timestamp, body }: Signed,
  secrets: readonly string[],
): Readonly<Record<string, string>> {
  const keys = secrets.map(keysOf)
  const hex = keys.map(({ whole }) => `v1=${hmac(whole, `${timestamp}.${body}`, 'hex')}`)
  const base64 = keys.map(
    ({ decoded }) => `v1,${hmac(decoded, `${deliveryId}.${timestamp}.${body}`, 'base64')}`,
  )
  return {
    'X-Service-Signature': [`t=${timestamp}`, ...hex].join(','),
    'webhook-id': deliveryId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': base64.join(' '),
  }
}

function hmac(key: KeyObject, text: string, encoding: 'hex' | 'base64'): string {
  return createHmac('sha256', key).update(text).digest(encoding)
}

interface SecretKeys {
  readonly whole: KeyObject
  readonly decoded: KeyObject
}

/** More than are in use at a time on most servers. */
const MAX_KEYS = 2_000
const keysBySecret = new Map<string, SecretKeys>()

/** Kept, since making a key takes three times as long as a signature with it. */
function keysOf(secret: string): SecretKeys {
  const known = keysBySecret.get(secret)
  if (known) return known
  if (keysBySecret.size >= MAX_KEYS) keysBySecret.clear()
  const keys = {
    whole: createSecretKey(secret, 'utf8'),
    decoded: createSecretKey(secret.slice(PREFIX.length), 'base64'),
  }
  keysBySecret.set(secret, keys)
  return keys
}

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

/** Before each attempt after the first, each ±10 %. */
const WAITS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR]

/** Per delivery, until it is replayed. */
export const MAX_ATTEMPTS = WAITS_MS.length + 1

export const GONE = 410

/** Upper bound of Retry-After. */
const MAX_RETRY_AFTER_MS = 24 * HOUR

/** A webhook with no success for this long is disabled. */
export const FAILING_FOR_MS = 5 * 24 * HOUR

/**
 * @param attempts made so far, since the last replay; >= 1
 * @param fraction uniform random number in [0, 1)
 * @param retryAfterMs wait requested by the receiver
 * @returns ms to wait; undefined if that was the last attempt
 */
export function waitAfter(attempts: number, fraction: number, retryAfterMs = 0): number | undefined {
  const planned = WAITS_MS[attempts - 1]
  if (planned === undefined) return undefined
  const jittered = Math.round(planned * (1 - JITTER + 2 * JITTER * fraction))
  return Math.max(jittered, Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
}

/** @param now ms since epoch UTC @returns undefined for anything but seconds or an HTTP date */
export function readRetryAfter(field: string | undefined, now: number): number | undefined {
  if (field === undefined) return undefined
  if (/^\d{1,9}$/.test(field)) return Number(field) * SECOND
  const at = /^[A-Z][a-z]{2}, /.test(field) ? Date.parse(field) : NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}
