/**
 * Messages between the server and the parser thread: mail in, findings out.
 *
 * Plain values only, since they are cloned.
 */
import type { ReturnedKind, ReturnedRecipient } from '../mail/returned/returned-mail.js'
import type { ReportFields, ReportKind } from '../deliverability/reports/report-store.js'

/** Kinds of content to parse a mail for, by its recipients. */
export interface Wanted {
  readonly returned: boolean
  readonly reports: boolean
  readonly head: boolean
}

export interface ParseTask {
  readonly wanted: Wanted
  /** An unshared buffer: it is transferred. */
  readonly octets: Uint8Array<ArrayBuffer>
}

/** A returned mail with everything that may identify its message; nothing is verified yet. */
export interface ReturnedFinding {
  readonly kind: ReturnedKind
  readonly form: string
  /** At most 100. */
  readonly recipients: readonly ReturnedRecipient[]
  /** X-Postroad-ID of the returned part. */
  readonly token?: string
  readonly envelopeId?: string
  /** Envelope senders named in the returned part or the report; at most two, without angle brackets. */
  readonly returnPaths?: readonly string[]
  /** Message-ID of the returned part, without angle brackets. */
  readonly messageId?: string
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

/** A report for the database: serializing a thousand records takes a while, so the thread does it. */
export interface SerializedReport extends Omit<ParsedReport, 'records'> {
  readonly recordsJson: string
}

export interface MailHead {
  readonly subject: string
  readonly from: string
  /** At most 20 values of X-Loop. */
  readonly loops: readonly string[]
}

export interface MailFinding {
  readonly returned?: ReturnedFinding
  readonly reports?: readonly SerializedReport[]
  readonly head?: MailHead
  /** Why the mail or its report could not be parsed. */
  readonly fault?: string
}

export interface ParseRequest {
  readonly number: number
  readonly tasks: readonly ParseTask[]
}

export type ParseAnswer =
  | { readonly kind: 'ready' }
  /** One per task, in order: if the thread ends, this tells at which mail. */
  | { readonly kind: 'read'; readonly number: number; readonly finding: MailFinding }
