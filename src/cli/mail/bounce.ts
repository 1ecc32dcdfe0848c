/** `postroad bounce parse FILE...`: how returned mails are read, one after the other. Touches neither configuration nor database. */
import { createReadStream } from 'node:fs'
import type { Command } from 'commander'
import { describeError } from '../../core/errors.js'
import { readReturnedMail } from '../../mail/returned/read-returned-mail.js'
import type { ReturnedMail, ReturnedRecipient } from '../../mail/returned/returned-mail.js'
import { command, printResult, type CliContext, type CommonOptions } from '../context.js'

/** Octets of a file; the reader looks at less than that. */
const MAX_FILE = 10 * 1024 * 1024

interface ParsedFile {
  readonly file: string
  readonly mail: ReturnedMail
}

export function bounceCommands(program: Command, context: CliContext): void {
  const group = program.command('bounce').description('bounces, complaints and other mail that comes back')
  command(group, 'parse <file...>', 'show how returned mails are read').action(
    async (files: string[], options: CommonOptions) => {
      const parsed: ParsedFile[] = []
      for (const file of files) {
        try {
          parsed.push({ file, mail: readReturnedMail(await readBeginning(file)) })
        } catch (error) {
          context.complain(`postroad: ${file}: ${describeError(error)}`)
          context.fail()
        }
      }
      printResult(context, options, parsed.map(toJson), () => parsed.map(toText).join('\n\n'))
    },
  )
}

async function readBeginning(file: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of createReadStream(file, { end: MAX_FILE - 1 })) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** A delivery, relay or expansion that was reported is `other`: nothing went wrong. */
function shownKind({ kind }: ReturnedMail): string {
  return kind === 'success' ? 'other' : kind
}

function toJson({ file, mail }: ParsedFile) {
  return { file, kind: shownKind(mail), recipients: mail.recipients.map(recipientJson) }
}

function recipientJson(one: ReturnedRecipient) {
  return {
    recipient: one.recipient,
    action: one.action ?? null,
    status: one.status ?? null,
    reply_code: one.replyCode ?? null,
    diagnostic_code: one.diagnosticCode ?? null,
    remote_mta: one.remoteMta ?? null,
    type: one.type ?? null,
    subtype: one.subtype ?? null,
    cause: one.cause ?? null,
    feedback_type: one.feedbackType ?? null,
  }
}

function toText({ file, mail }: ParsedFile): string {
  const about = mail.original?.messageId === undefined ? [] : [`  about ${mail.original.messageId}`]
  return [
    `${file}: ${shownKind(mail)} (${mail.form})`,
    ...about,
    ...mail.recipients.flatMap(recipientLines),
  ].join('\n')
}

function recipientLines(one: ReturnedRecipient): string[] {
  const verdict = [
    one.action,
    one.feedbackType,
    one.status,
    one.replyCode,
    one.type,
    one.subtype?.replaceAll('_', ' '),
    one.cause === undefined ? undefined : `cause: ${one.cause}`,
    one.remoteMta === undefined ? undefined : `by ${one.remoteMta}`,
  ].filter(part => part !== undefined)
  const said = one.diagnosticCode === undefined ? [] : [`    ${one.diagnosticCode}`]
  return [`  ${one.recipient || '(address withheld)'}: ${verdict.join(', ') || '-'}`, ...said]
}
