/**
 * Lines of the log that answer "what happened to ann's mail?": one for each acceptance, attempt, bounce, suppression and refusal
 * of a message, all with the same names for the same things.
 *
 * Called after the commit of what they tell, by the door (`msa/`), the queue and inbound mail. Subjects, bodies, header fields and keys
 * themselves never stand in them; a key's id does. Costs a few microseconds a line and no statement. Fails: never.
 */
import type { Log, LogFields } from '../world/log.js'
import type { LogEvent } from '../world/log-events.js'

/** Who handed a message in. */
export interface SubmittedBy {
  /** Of the API key, by which a trusted network's devices act as well. */
  readonly keyId: string
  /** IP address of the client. */
  readonly peer: string
}

/** What lines say of a message beside what happened to it. */
export interface LoggedSubmission extends Partial<SubmittedBy> {
  /** Its author, as in From; absent where only its id is at hand. */
  readonly from?: string
}

/** `delay` and `delays` of an attempt, as Postfix's log has them. */
export interface AttemptTimes {
  /** When it was accepted, or was to leave; ms since epoch UTC, as all moments. */
  readonly acceptedAt: number
  /** When this attempt fell due; absent where nobody remembers. */
  readonly dueAt?: number
  readonly startedAt: number
  readonly finishedAt: number
  /** Of the last host's transaction: from an open connection to the end, ms. */
  readonly transmissionMs?: number
}

/** What can be logged of a message: `delivered` of `message delivered`. */
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
 * Seconds, as in Postfix: `delay` in all, `delays` as a/b/c/d: a until this attempt fell due (the time of earlier attempts
 * included), b until it began, c for finding and reaching the host, d for handing the message over.
 */
export function delays(times: AttemptTimes): { readonly delay: number; readonly delays: string } {
  const { acceptedAt, startedAt, finishedAt } = times
  const dueAt = Math.min(Math.max(times.dueAt ?? startedAt, acceptedAt), startedAt)
  const tookMs = finishedAt - startedAt
  const transmissionMs = Math.min(times.transmissionMs ?? 0, tookMs)
  const parts = [dueAt - acceptedAt, startedAt - dueAt, tookMs - transmissionMs, transmissionMs]
  return { delay: seconds(finishedAt - acceptedAt), delays: parts.map(seconds).join('/') }
}

/** Two digits that count, as Postfix prints them. */
function seconds(ms: number): number {
  const positive = Math.max(0, ms) / 1_000
  return positive >= 10 ? Math.round(positive) : Number(positive.toPrecision(2))
}
