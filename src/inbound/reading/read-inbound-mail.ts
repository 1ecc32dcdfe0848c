/**
 * Parses one inbound mail: a returned mail, reports, or its header fields.
 *
 * Runs in the parser thread. Nothing found here is trusted yet: the server verifies tokens. Standards: RFC 2045 §6, RFC
 * 2046 §5.1.
 */
import { given } from '../../core/given.js'
import { describeError } from '../../core/errors.js'
import { readMessageHeader } from '../../mail/mime/header-fields.js'
import type { ReturnedMail } from '../../mail/returned/returned-mail.js'
import { TOKEN_FIELD } from '../../mail/server-fields.js'
import { readReport, MAX_UNPACKED } from '../reports/read-report.js'
import type {
  MailFinding,
  MailHead,
  ParsedReport,
  ParseTask,
  ReturnedFinding,
  SerializedReport,
  ParseAnswer,
  ParseRequest,
} from '../parser-protocol.js'
import { leavesOf, LENIENT, readMimeStructure } from '../../mail/mime/mime-structure.js'
import { decodeTransfer } from '../../mail/mime/transfer-encoding.js'
import type { OwnThread } from '../../world/threads.js'

export type ReadReturned = (source: Buffer) => ReturnedMail | Promise<ReturnedMail>

const MAX_RECIPIENTS = 100
const MAX_REPORTS = 5
const MAX_FIELD = 998
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
    recipients: recipients.slice(0, MAX_RECIPIENTS),
    ...(token === undefined ? {} : { token: token.trim().slice(0, MAX_FIELD) }),
    ...(to === undefined ? {} : { to: to.slice(0, MAX_FIELD) }),
    ...(returnPaths.length === 0 ? {} : { returnPaths: returnPaths.map(bareAddress) }),
    ...(envelopeId === undefined ? {} : { envelopeId: envelopeId.slice(0, MAX_FIELD) }),
    ...(original?.messageId === undefined ? {} : { messageId: original.messageId.slice(0, MAX_FIELD) }),
  }
}

function bareAddress(text: string): string {
  const bounded = text.slice(0, MAX_FIELD)
  const [inner = ''] = bounded.slice(bounded.indexOf('<') + 1).split('>', 1)
  return inner.trim()
}

/** A bad report does not hide the others. */
function readReports(source: Buffer): Pick<MailFinding, 'reports' | 'fault'> {
  const reports: SerializedReport[] = []
  let fault: string | undefined
  const budget = { remaining: MAX_UNPACKED }
  for (const attachment of findAttachments(source)) {
    if (reports.length >= MAX_REPORTS) break
    try {
      reports.push(...readReport(attachment, budget).map(serialize))
    } catch (error) {
      fault ??= describeError(error).slice(0, 200)
    }
  }
  return { reports: reports.slice(0, MAX_REPORTS), ...given({ fault }) }
}

function serialize({ records, ...report }: ParsedReport): SerializedReport {
  return { ...report, recordsJson: JSON.stringify(records) }
}

function readHead(source: Buffer): MailHead {
  const header = readMessageHeader(source.toString('latin1', 0, HEAD_OCTETS))
  return {
    subject: header.text('subject').slice(0, MAX_FIELD),
    from: header.text('from').slice(0, MAX_FIELD),
    loops: header.all('x-loop').slice(0, 20),
  }
}

const MAX_LEAVES = 20

/**
 * The decoded MIME leaves of a mail, at most 20. Report attachments may be binary and larger than what the parser of
 * returned mail reads.
 */
export function findAttachments(source: Buffer): Buffer[] {
  return leavesOf(readMimeStructure(source, LENIENT))
    .slice(0, MAX_LEAVES)
    .map(({ bodyStart, end, encoding }) => decodeTransfer(source.subarray(bodyStart, end), encoding))
}

export function serveParser(thread: OwnThread, readReturned: ReadReturned): void {
  const answer = (value: ParseAnswer): void => thread.post(value)
  let turn = Promise.resolve()
  thread.listen(message => {
    const { number, tasks } = message as ParseRequest
    turn = turn.then(async () => {
      for (const task of tasks) answer({ kind: 'read', number, finding: await read(task, readReturned) })
    })
  })
  answer({ kind: 'ready' })
}

async function read(task: ParseTask, readReturned: ReadReturned): Promise<MailFinding> {
  try {
    return await readInboundMail(task, readReturned)
  } catch (error) {
    return { fault: describeError(error).slice(0, 200) }
  }
}
