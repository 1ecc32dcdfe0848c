/**
 * What the server and the thread that reads inbound mail say to each other: octets one way, findings the other.
 *
 * Spoken by `parser-thread.ts` (server) and `parser-main.ts` (thread). Holds no logic; values only, since they are copied.
 */
import type { ReturnedKind, ReturnedRecipient } from '../../mail/returned/returned-mail.js'
import type { ReportFields, ReportKind } from '../../deliverability/reports/report-store.js'

/** What is wanted of a mail; its recipients decide. */
export interface Wanted {
  /** A bounce, a complaint. */
  readonly returned: boolean
  /** Reports about domains. */
  readonly reports: boolean
  /** Subject and marks against loops, for forwarding. */
  readonly head: boolean
}

export interface ParseTask {
  readonly wanted: Wanted
  /** In memory of their own: they change hands. */
  readonly octets: Uint8Array<ArrayBuffer>
}

/** A returned mail, with what may tell the message it is about; nothing of that is verified yet. */
export interface ReturnedFinding {
  readonly kind: ReturnedKind
  readonly form: string
  /** At most 100. */
  readonly recipients: readonly ReturnedRecipient[]
  /** X-Postroad-ID of the returned part. */
  readonly token?: string
  /** Original-Envelope-Id. */
  readonly envelopeId?: string
  /** What the returned part, or the report, says the envelope sender was; at most two, without angle brackets. */
  readonly returnPaths?: readonly string[]
  /** Message-ID of the returned part, without angle brackets. */
  readonly messageId?: string
  /** To of the returned part. */
  readonly to?: string
}

export interface ParsedReport {
  readonly kind: ReportKind
  /** Lower case. */
  readonly domain: string
  readonly orgName: string
  readonly reportId: string
  /** Ms since epoch UTC. */
  readonly beginAt: number
  readonly endAt: number
  readonly summary: ReportFields
  /** At most 1,000. */
  readonly records: readonly ReportFields[]
}

/** The same on its way to the database: its records written out already, which for a thousand takes a while. */
export interface SerializedReport extends Omit<ParsedReport, 'records'> {
  readonly recordsJson: string
}

export interface MailHead {
  readonly subject: string
  readonly from: string
  /** Values of X-Loop, at most 20. */
  readonly loops: readonly string[]
}

export interface MailFinding {
  readonly returned?: ReturnedFinding
  readonly reports?: readonly SerializedReport[]
  readonly head?: MailHead
  /** Why it, or its report, could not be read; in a few words. */
  readonly fault?: string
}

/** To the thread, one at a time. */
export interface ParseRequest {
  readonly number: number
  readonly tasks: readonly ParseTask[]
}

/** From the thread. */
export type ParseAnswer =
  | { readonly kind: 'ready' }
  /** One for each task, in their order: so it is known which one a thread was busy with when it ended. */
  | { readonly kind: 'read'; readonly number: number; readonly finding: MailFinding }
