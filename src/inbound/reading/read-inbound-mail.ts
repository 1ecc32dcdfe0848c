/**
 * Reads one inbound mail for what is wanted of it: a returned mail, reports, or its head.
 *
 * Called in the reading thread. Pure; the reader of returned mail is handed in. Nothing found here is believed yet: tokens
 * are verified where the database is. Fails: throws for what cannot be read at all.
 */
import { given } from '../../core/given.js'
import { describeError } from '../../core/errors.js'
import { readMessageHeader } from '../../mail/mime/header-section.js'
import type { ReturnedMail } from '../../mail/returned/returned-mail.js'
import { TOKEN_FIELD } from '../../mail/server-fields.js'
import { findAttachments } from './attachments.js'
import { readReport } from '../reports/read-report.js'
import { MOST_UNPACKED } from '../reports/unpack.js'
import type {
  MailFinding,
  MailHead,
  ParsedReport,
  ParseTask,
  ReturnedFinding,
  WrittenReport,
} from './parser-protocol.js'

export type ReadReturned = (source: Buffer) => ReturnedMail | Promise<ReturnedMail>

const MOST_RECIPIENTS = 100
const MOST_REPORTS = 5
/** Of a field that is looked at. */
const MOST_TEXT = 998
/** The header is at the front. */
const HEAD_OCTETS = 65_536

export async function readInboundMail(task: ParseTask, readReturned: ReadReturned): Promise<MailFinding> {
  const { wanted, octets } = task
  const source = Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength)
  return {
    ...(wanted.returned ? { returned: toFinding(await readReturned(source)) } : {}),
    ...(wanted.reports ? readReports(source) : {}),
    ...(wanted.head ? { head: readHead(source) } : {}),
  }
}

function toFinding(mail: ReturnedMail): ReturnedFinding {
  const { kind, form, recipients, original, envelopeId, originalSender } = mail
  const token = original?.header.get(TOKEN_FIELD.toLowerCase())
  const to = original?.header.get('to')
  const returnPaths = [original?.header.get('return-path'), originalSender].filter(one => one !== undefined)
  return {
    kind,
    form,
    recipients: recipients.slice(0, MOST_RECIPIENTS),
    ...(token === undefined ? {} : { token: token.trim().slice(0, MOST_TEXT) }),
    ...(to === undefined ? {} : { to: to.slice(0, MOST_TEXT) }),
    ...(returnPaths.length === 0 ? {} : { returnPaths: returnPaths.map(bareAddress) }),
    ...(envelopeId === undefined ? {} : { envelopeId: envelopeId.slice(0, MOST_TEXT) }),
    ...(original?.messageId === undefined ? {} : { messageId: original.messageId.slice(0, MOST_TEXT) }),
  }
}

function bareAddress(text: string): string {
  return text
    .slice(0, MOST_TEXT)
    .replace(/^[^<]*<|>.*$/gs, '')
    .trim()
}

/** A mail seldom has more than one report; the fault of one does not hide the others. */
function readReports(source: Buffer): Pick<MailFinding, 'reports' | 'fault'> {
  const reports: WrittenReport[] = []
  let fault: string | undefined
  const budget = { left: MOST_UNPACKED }
  for (const attachment of findAttachments(source)) {
    if (reports.length >= MOST_REPORTS) break
    try {
      reports.push(...readReport(attachment, budget).map(written))
    } catch (error) {
      fault ??= describeError(error).slice(0, 200)
    }
  }
  return { reports: reports.slice(0, MOST_REPORTS), ...given({ fault }) }
}

function written({ records, ...report }: ParsedReport): WrittenReport {
  return { ...report, recordsJson: JSON.stringify(records) }
}

function readHead(source: Buffer): MailHead {
  const header = readMessageHeader(source.toString('latin1', 0, HEAD_OCTETS))
  return {
    subject: header.text('subject').slice(0, MOST_TEXT),
    from: header.text('from').slice(0, MOST_TEXT),
    loops: header.all('x-loop').slice(0, 20),
  }
}
