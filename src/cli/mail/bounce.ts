/**
 * `postroad bounce list`: bounces of a workspace. `postroad bounce parse FILE...`: parses bounce messages from files, without configuration
 * or database.
 */
import type { Command } from 'commander'
import { describeError } from '../../core/errors.js'
import { isoTime, readMoment } from '../../core/moments.js'
import { bounceToApi } from '../../deliverability/bounces/bounce-routes.js'
import { listBounces } from '../../deliverability/bounces/bounce-store.js'
import { normalizedAddress } from '../../mail/address.js'
import { PERMANENCES, type Permanence } from '../../mail/outcome.js'
import { readReturnedMail } from '../../mail/returned/read-returned-mail.js'
import type { ReturnedMail, ReturnedRecipient } from '../../mail/returned/returned-mail.js'
import {
  getWorkspace,
  printResult,
  table,
  withAppliance,
  type CliContext,
  type CommonOptions,
  type ListOptions,
  type OwnedOptions,
  openInput,
} from '../context.js'
import { choice, command, limited, owned } from '../options.js'
import { failureJson } from '../failure.js'
import { readWhen } from './message.js'

interface BounceListOptions extends OwnedOptions, ListOptions {
  readonly to?: string
  readonly type?: string
  readonly since?: string
}

/** Octets read from a file; more than the parser looks at. */
const MAX_FILE = 10 * 1024 * 1024

interface ParsedFile {
  readonly file: string
  readonly mail: ReturnedMail
}

export function bounceCommands(program: Command, context: CliContext): void {
  const group = program.command('bounce').description('bounces and complaints')
  bounceListCommand(group, context)
  command(group, 'parse <file...>', 'parse bounce messages and print the result').action(
    async (files: string[], options: CommonOptions) => {
      const parsed: ParsedFile[] = []
      for (const file of files) {
        try {
          parsed.push({ file, mail: readReturnedMail(await readBeginning(file)) })
        } catch (error) {
          const fault = new Error(`${file}: ${describeError(error)}`)
          context.complain(options.json ? failureJson(fault) : `postroad: ${fault.message}`)
          context.fail()
        }
      }
      printResult(context, options, parsed.map(toJson), () => parsed.map(toText).join('\n\n'))
    },
  )
}

function bounceListCommand(group: Command, context: CliContext): void {
  const list = command(group, 'list', 'list bounces and permanent rejections, newest first')
  choice(limited(owned(list, 'workspace of the bounces'), 50), '--type <type>', PERMANENCES)
    .option('--to <address>', 'only this recipient')
    .option('--since <when>', 'received since: 2h, 3d, or a date and time (UTC)')
    .action(async (options: BounceListOptions) => {
      const { to, type, since, limit } = options
      await withAppliance(context, options, async ({ database: { reader }, world }) => {
        await getWorkspace(reader, options.workspace)
        const filter = {
          ...(to === undefined ? {} : { email: normalizedAddress(to) }),
          ...(type === undefined ? {} : { type: type as Permanence }),
          ...(since === undefined
            ? {}
            : { since: readWhen('--since', since, world.clock.now(), readMoment) }),
        }
        const { items } = await listBounces(reader, options.workspace, filter, { limit, offset: 0 })
        printResult(context, options, items.map(bounceToApi), () =>
          table(
            ['WHEN', 'TO', 'TYPE', 'CAUSE', 'STATUS', 'HOST', 'MESSAGE', 'DIAGNOSTIC'],
            items.map(one => [
              isoTime(one.createdAt),
              one.email,
              one.type,
              `${one.cause}/${one.subtype}`,
              one.smtpStatus,
              one.remoteMta,
              one.messageId,
              one.diagnosticCode.replace(/[\p{Cc}]/gu, ' ').slice(0, 80),
            ]),
          ),
        )
      })
    })
}

async function readBeginning(file: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let octets = 0
  for await (const chunk of openInput(file)) {
    chunks.push(chunk)
    octets += chunk.length
    if (octets >= MAX_FILE) break
  }
  return Buffer.concat(chunks).subarray(0, MAX_FILE)
}

/** A delivery, relay or expansion report is `other`: it reports no failure. */
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
