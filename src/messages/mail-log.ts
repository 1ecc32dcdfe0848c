/**
 * Log lines about messages: one per acceptance, attempt, bounce, suppression and rejection, with the same field names
 * everywhere.
 *
 * Written after the commit they report, by `msa/`, the queue and inbound mail. Subjects, bodies, header fields and
 * secret keys are never logged.
 */
import type { Log, LogFields } from '../world/log.js'
import type { LogEvent } from '../world/log-events.js'

export interface SubmittedBy {
  /** Id of the API key; a trusted network acts through a key as well. */
  readonly keyId: string
  readonly peer: string
}

export interface LoggedSubmission extends Partial<SubmittedBy> {
  /** The From address; absent if only the id is known. */
  readonly from?: string
}

export interface AttemptTimes {
  /** When it was accepted, or scheduled for; ms since epoch UTC like all others. */
  readonly acceptedAt: number
  /** When this attempt fell due; absent if unknown. */
  readonly dueAt?: number
  readonly startedAt: number
  readonly finishedAt: number
  /** Ms from the connection to the end of the last host's transaction. */
  readonly transmissionMs?: number
}

/** Log events of a message without their noun: `delivered` of `message delivered`. */
type MessageEvent =
  LogEvent<'info'> extends infer E ? (E extends `message ${infer What}` ? What : never) : never

/** @param what e.g. `delivered`: the event is then `message delivered` */
export function logMessage(
  log: Log | undefined,
  what: MessageEvent,
  messageId: string,
  { from, keyId, peer }: LoggedSubmission,
  to: string,
  fields: LogFields = {},
): void {
  log?.info(`message ${what}`, { messageId, from, to, keyId, peer, ...fields })
}

/**
 * Seconds, as in Postfix: `delay` is the total, `delays` is a/b/c/d: a until this attempt fell due (earlier attempts
 * included), b until it started, c for routing and connecting, d for the transmission.
 */
export function delays(times: AttemptTimes): { readonly delay: number; readonly delays: string } {
  const { acceptedAt, startedAt, finishedAt } = times
  const dueAt = Math.min(Math.max(times.dueAt ?? startedAt, acceptedAt), startedAt)
  const tookMs = finishedAt - startedAt
  const transmissionMs = Math.min(times.transmissionMs ?? 0, tookMs)
  const parts = [dueAt - acceptedAt, startedAt - dueAt, tookMs - transmissionMs, transmissionMs]
  return { delay: seconds(finishedAt - acceptedAt), delays: parts.map(seconds).join('/') }
}

/** Two significant digits, as in Postfix. */
function seconds(ms: number): number {
  const positive = Math.max(0, ms) / 1_000
  return positive >= 10 ? Math.round(positive) : Number(positive.toPrecision(2))
}
