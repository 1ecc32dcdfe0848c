/**
 * `postroad bounce list`: bounces of a workspace, by the REST API. `postroad bounce parse FILE...`: how returned mails are read.
 *
 * Parsing asks no server: it needs neither configuration nor database, so a file can be examined on any machine. The admin API has the
 * same as `POST /bounces/parse`.
 */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { describeError } from '../../core/errors.js'
import { isoTime, readMoment } from '../../core/moments.js'
import type { BounceSchema } from '../../deliverability/bounces/bounce-routes.js'
import { parsedToApi, type ParsedBounce } from '../../deliverability/bounces/parse-route.js'
import { PERMANENCES } from '../../mail/outcome.js'
import { readReturnedMail } from '../../mail/returned/read-returned-mail.js'
import { printResult, type CliContext, type CommonOptions, openInput } from '../context.js'
import { choice, command, printsRest, workspaceGroup } from '../options.js'
import { failureJson } from '../failure.js'
import { readWhen } from './message.js'

interface BounceListOptions {
  readonly to?: string
  readonly type?: string
  readonly since?: string
}

/** Octets read from a file; more than the parser looks at. */
const MAX_FILE = 10 * 1024 * 1024

export function bounceCommands(program: Command, context: CliContext): void {
  const { group, inWorkspace } = workspaceGroup(
    program,
    'bounce',
    'bounces and complaints',
    'workspace of the bounces',
  )
  const list = inWorkspace('list', 'list bounces and permanent rejections, newest first')
    .option('--to <address>', 'only this recipient')
    .option('--since <when>', 'received since: 2h, 3d, or a date and time (UTC)')
  printsRest<Static<typeof BounceSchema>, BounceListOptions>(
    context,
    choice(list, '--type <type>', PERMANENCES),
    {
      path: () => '/bounces',
      query: ({ to, type, since }) => ({
        email: to,
        type,
        since:
          since === undefined
            ? undefined
            : isoTime(readWhen('--since', since, context.world.clock.now(), readMoment)),
      }),
      head: ['WHEN', 'TO', 'TYPE', 'CAUSE', 'STATUS', 'HOST', 'MESSAGE', 'DIAGNOSTIC'],
      cells: one => [
        one.created_at,
        one.email,
        one.type,
        `${one.cause}/${one.subtype}`,
        one.smtp_status,
        one.remote_mta,
        one.message_id,
        one.diagnostic_code.replace(/[\p{Cc}]/gu, ' ').slice(0, 80),
      ],
    },
  )
  parseCommand(group, context)
}

type ParsedFile = ParsedBounce & { readonly file: string }

function parseCommand(group: Command, context: CliContext): void {
  command(group, 'parse <file...>', 'parse bounce messages and print the result; - is standard input').action(
    async (files: string[], options: CommonOptions) => {
      const parsed: ParsedFile[] = []
      for (const file of files) {
        try {
          parsed.push({ file, ...parsedToApi(readReturnedMail(await readBeginning(file))) })
        } catch (error) {
          const fault = new Error(`${file}: ${describeError(error)}`)
          context.complain(options.json ? failureJson(fault) : `postroad: ${fault.message}`)
          context.fail()
        }
      }
      printResult(context, options, parsed, () => parsed.map(toText).join('\n\n'))
    },
  )
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

function toText({ file, kind, format, original_message_id: original, recipients }: ParsedFile): string {
  return [
    `${file}: ${kind} (${format})`,
    ...(original === null ? [] : [`  about ${original}`]),
    ...recipients.flatMap(recipientLines),
  ].join('\n')
}

function recipientLines(one: ParsedBounce['recipients'][number]): string[] {
  const verdict = [
    one.action,
    one.feedback_type,
    one.status,
    one.reply_code,
    one.type,
    one.subtype?.replaceAll('_', ' '),
    one.cause === null ? null : `cause: ${one.cause}`,
    one.remote_mta === null ? null : `by ${one.remote_mta}`,
    one.isp_name === null ? null : `at ${one.isp_name}`,
  ].filter(part => part !== null && part !== undefined)
  const said = one.diagnostic_code === null ? [] : [`    ${one.diagnostic_code}`]
  return [`  ${one.recipient || '(address withheld)'}: ${verdict.join(', ') || '-'}`, ...said]
}
