/**
 * `postroad send`: sends one mail, from options or standard input, and shows its trace.
 *
 * The input is the text of a mail, as mail(1) reads it, or a whole message, as sendmail(8) does. A client of the APIs: the mail takes the same
 * path as all other mail, and the server delivers it while this command waits. `--dry-run` shows the mail and its route without sending.
 * Fails as submission does, with AppError.
 */
import type { Command } from 'commander'
import type { Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import type { MessageDetail } from '../../msa/log/message-admin-routes.js'
import type { MailPreview } from '../../msa/rest/preview-route.js'
import type { ScheduledResult, SendResult } from '../../msa/rest/send-schema.js'
import type { SubmittedMessage } from '../../msa/submission/submit-route.js'
import { withApi, type Api } from '../api.js'
import { type CliContext, type CommonOptions, printResult, UsageError } from '../context.js'
import { apiCommand } from '../options.js'
import { messageText } from './message.js'

interface SendOptions extends CommonOptions {
  readonly from?: string
  readonly to?: string
  readonly subject?: string
  readonly text?: string
  readonly html?: string
  readonly workspace?: string
  readonly dryRun?: boolean
}

/** How long the command waits for the first attempt. */
const WAIT_MS = 30_000
const POLL_MS = 200
/** Octets of a text from standard input; more than the server accepts. */
const MAX_TEXT = 16 * 1_024 * 1_024

export function sendCommand(program: Command, context: CliContext): void {
  apiCommand(program, 'send', 'send one mail and show its trace')
    .option('--from <address>', 'sender')
    .option('--to <address>', 'recipient')
    .option('--subject <text>', 'subject')
    .option('--text <text>', 'plain text body; - is standard input')
    .option('--html <html>', 'HTML body')
    .option('--workspace <name|id>', 'workspace to send from (default: the oldest)')
    .option('--dry-run', 'show the mail and its route without sending')
    .addHelpText(
      'after',
      [
        '',
        'With --subject, the body is --text, --html, or standard input: echo Hello | postroad send --from A --to B --subject S',
        'Without --subject, standard input is a whole message: postroad send <message.eml',
        '  --from and --to then set its envelope (default: its From, and its To, Cc and Bcc).',
      ].join('\n'),
    )
    .action(async (options: SendOptions) => {
      const content =
        options.subject === undefined
          ? { message: messageOf(context, options) }
          : { mail: await mailOf(context, options) }
      await withApi(context, options, async api => {
        // An id by now.
        const workspaceId = options.workspace ?? (await findOldestWorkspace(api))
        if ('mail' in content && options.dryRun)
          return dryRun(api, context, options, workspaceId, content.mail)
        const ids =
          'mail' in content
            ? await send(api, workspaceId, content.mail)
            : await submit(api, workspaceId, options, content.message)
        await showOutcome(api, context, options, ids)
      })
    })
}

async function findOldestWorkspace({ admin }: Api): Promise<string> {
  const [oldest] = await admin.list<{ id: string }>('/workspaces', {}, 1)
  if (!oldest) throw new AppError('not_found', 'there is no workspace yet; create one with: postroad init')
  return oldest.id
}

interface Mail {
  readonly from_email: string
  readonly to: string
  readonly subject: string
  readonly text?: string
  readonly html?: string
}

/** The options, with the text from standard input. */
async function mailOf({ input }: CliContext, { from, to, subject, text, html }: SendOptions): Promise<Mail> {
  if (from === undefined || to === undefined || subject === undefined)
    throw new UsageError('--subject requires --from and --to')
  const isAsked = text === '-'
  if (isAsked && !input) throw new UsageError('--text - requires the text on standard input')
  const isRead = input && (isAsked || (text === undefined && html === undefined))
  const piped = isRead ? await readText(input()) : ''
  const written = piped === '' ? text : piped
  const bodies =
    written === undefined && html === undefined
      ? { text: 'This is a test mail.\n' }
      : given({ text: written, html })
  return { from_email: from, to, subject, ...bodies }
}

/** @throws AppError validation_error */
async function readText(input: AsyncIterable<Buffer | string>): Promise<string> {
  const pieces: Buffer[] = []
  let octets = 0
  for await (const piece of input) {
    pieces.push(Buffer.from(piece))
    octets += piece.length
    if (octets > MAX_TEXT)
      throw new AppError('validation_error', `the text is larger than ${MAX_TEXT} octets`)
  }
  return Buffer.concat(pieces).toString()
}

/** A whole message from standard input. @throws UsageError */
function messageOf(
  { input }: CliContext,
  { text, html, dryRun: isDry }: SendOptions,
): AsyncIterable<Buffer | string> {
  if (text !== undefined || html !== undefined || isDry)
    throw new UsageError('--text, --html and --dry-run require --from, --to and --subject')
  if (!input)
    throw new UsageError('pass --from, --to and --subject, or pipe a message in: postroad send <message.eml')
  return input()
}

/** @returns ids of the messages */
async function send(api: Api, workspaceId: string, mail: Mail): Promise<string[]> {
  const rest = api.inWorkspace(workspaceId)
  const sent = await rest.send<Static<typeof SendResult> | Static<typeof ScheduledResult>>(
    ...(['POST', '/email/send', mail] as const),
  )
  return 'results' in sent ? sent.results.map(one => one.message_id) : [sent.message_id]
}

/** @returns ids of the first recipients' messages */
async function submit(
  { admin }: Api,
  workspaceId: string,
  { from, to }: SendOptions,
  message: AsyncIterable<Buffer | string>,
): Promise<readonly string[]> {
  const query = { workspace_id: workspaceId, from, to }
  const file = octetsOf(message)
  const sent = await admin.upload<SubmittedMessage>('/messages/submit', file, 'message/rfc822', query)
  return sent.message_ids
}

async function* octetsOf(input: AsyncIterable<Buffer | string>): AsyncGenerator<Buffer> {
  for await (const piece of input) yield Buffer.from(piece)
}

async function dryRun(
  { admin }: Api,
  context: CliContext,
  options: CommonOptions,
  workspaceId: string,
  mail: Mail,
): Promise<void> {
  const query = { workspace_id: workspaceId }
  const preview = await admin.send<MailPreview>('POST', '/messages/preview', mail, query)
  printResult(context, options, preview, () =>
    [preview.mail, 'route:', ...preview.route.map(line => `  ${line}`)].join('\n'),
  )
}

/** Prints each recipient's message with its trace; as JSON an array if there are several. */
async function showOutcome(
  api: Api,
  context: CliContext,
  options: CommonOptions,
  ids: readonly string[],
): Promise<void> {
  if (!api.isServing) context.complain('the server is not running; the mail is queued')
  const views: MessageDetail[] = []
  for (const id of ids) views.push(await (api.isServing ? attempted(api, context, id) : getMessage(api, id)))
  printResult(context, options, views.length === 1 ? views[0] : views, () =>
    views.map(view => messageText(view, view.envelope_sender)).join('\n\n'),
  )
  if (views.some(({ status }) => status === 'sent'))
    context.complain('not delivered yet; it stays queued and will be retried')
  if (views.some(({ status }) => ['bounced', 'failed', 'suppressed'].includes(status))) context.fail()
}

/** Waits until the message has a final status or its first attempt has ended. */
async function attempted(api: Api, { world: { clock } }: CliContext, id: string): Promise<MessageDetail> {
  const until = clock.monotonic() + WAIT_MS
  for (;;) {
    const message = await getMessage(api, id)
    if (message.status !== 'sent' || message.trace.length > 0 || clock.monotonic() >= until) return message
    await clock.sleep(POLL_MS)
  }
}

function getMessage({ admin }: Api, id: string): Promise<MessageDetail> {
  return admin.get<MessageDetail>(`/messages/${id}`)
}
