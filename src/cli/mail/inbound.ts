/**
 * `postroad inbound list|show|reprocess`: bounces, complaints and reports received. `postroad capture list|show`: the local inbox, which
 * `mta.capture` fills instead of sending mail.
 *
 * A mail is shown readable, as source with `--raw`, or its parts are saved with `--save`. One that exceeds the parser's limits is shown as
 * source.
 */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import type { InboundMailView } from '../../inbound/inbound-routes.js'
import { octetsToText } from '../../mail/mime/charset.js'
import type { CapturedMailView } from '../../messages/capture-routes.js'
import { octetsOf, withApi } from '../api.js'
import { type CliContext, type CommonOptions, printResult, table, UsageError } from '../context.js'
import { apiCommand, limited } from '../options.js'
import { type MailView, printable, saveParts, shownView, viewMail, viewToJson } from './mail-view.js'

interface ListOptions extends CommonOptions {
  readonly limit: number
  readonly result?: string
  readonly waiting?: boolean
}

export function inboundCommands(program: Command, context: CliContext): void {
  const group = program.command('inbound').description('inbound mail: bounces, complaints and reports')
  listCommand(group, context)
  showCommand(group, context)
  apiCommand(group, 'reprocess <id>', 'parse a mail again, e.g. after an upgrade').action(
    async (id: string, options: CommonOptions) => {
      const path = `/inbound/${readNumber(id)}/reprocess`
      await withApi(context, options, async ({ admin }) => {
        const done = await admin.send<{ id: number; status: string }>('POST', path)
        const text = `mail ${done.id} will be parsed again within seconds, or when the server starts`
        printResult(context, options, done, () => text)
      })
    },
  )
}

function listCommand(group: Command, context: CliContext): void {
  limited(apiCommand(group, 'list', 'list inbound mail, newest first'), 50)
    .option('--result <result>', 'only this result, e.g. bounce, unconfirmed, forged, failed')
    .option('--waiting', 'only mail not parsed yet')
    .action(async (options: ListOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const { result, waiting, limit } = options
        const mails = await admin.list<InboundMailView>('/inbound', { result, waiting }, limit)
        printResult(context, options, mails, () =>
          table(
            ['ID', 'RECEIVED', 'FROM', 'SIZE', 'RESULT', 'TO'],
            mails.map(mail => [
              mail.id,
              mail.received_at,
              `<${mail.sender}>`,
              mail.size,
              mail.result ?? 'waiting',
              mail.recipients.map(({ address }) => address).join(', '),
            ]),
          ),
        )
      })
    })
}

function showCommand(group: Command, context: CliContext): void {
  showOptions(apiCommand(group, 'show <id>', 'show an inbound mail and its result')).action(
    async (id: string, options: ShowOptions) => {
      const path = `/inbound/${readNumber(id)}`
      await withApi(context, options, async ({ admin }) => {
        const mail = await admin.get<InboundMailView>(path)
        const octets = await octetsOf(await admin.download(`${path}/source`))
        const raw = octets.toString('latin1')
        await printMail(context, options, {
          octets,
          json: { ...mail, raw },
          raw: printable(raw),
          facts: factsOf(mail),
        })
      })
    },
  )
}

function factsOf(mail: InboundMailView): string {
  const facts = [
    ['mail', String(mail.id)],
    ['received', `${mail.received_at} from ${mail.helo} [${mail.peer_address}], session ${mail.session}`],
    ['sender', `<${mail.sender}>`],
    ...mail.recipients.map(({ address, purpose, message_id: messageId }) => [
      'recipient',
      `<${address}> (${purpose}${messageId === null ? '' : `, message ${messageId}`})`,
    ]),
    ['processed', mail.processed_at ?? 'not yet'],
    ...mail.findings.map(({ result, message_id: messageId, confirmed, detail }) => [
      'result',
      [
        result,
        messageId === null ? '' : `message ${messageId}`,
        confirmed === false ? 'not confirmed' : '',
        detail ?? '',
      ]
        .filter(part => part !== '')
        .join(', '),
    ]),
  ]
  return facts.map(([name = '', value = '']) => printable(`${name.padEnd(10)} ${value}`)).join('\n')
}

function readNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`${text} is not the number of an inbound mail`)
  return Number(text)
}

export function captureCommands(program: Command, context: CliContext): void {
  const group = program.command('capture').description('the local inbox of mta.capture')
  limited(apiCommand(group, 'list', 'list captured mail, newest first'), 50).action(
    async (options: CommonOptions & { limit: number }) => {
      await withApi(context, options, async ({ admin }) => {
        const items = await admin.list<CapturedMailView>('/captured', {}, options.limit)
        printResult(context, options, items, () =>
          table(
            ['ID', 'CAUGHT', 'TO', 'SIZE', 'SUBJECT'],
            items.map(mail => [mail.id, mail.captured_at, mail.recipient, mail.size, mail.subject]),
          ),
        )
      })
    },
  )
  showOptions(apiCommand(group, 'show <id>', 'show a mail by number or message id')).action(
    async (id: string, options: ShowOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const path = `/captured/${encodeURIComponent(id)}`
        const head = await admin.get<CapturedMailView>(path)
        const octets = await octetsOf(await admin.download(`${path}/source`))
        const raw = octetsToText(octets)
        await printMail(context, options, { octets, json: { ...head, raw }, raw })
      })
    },
  )
}

interface ShowOptions extends CommonOptions {
  readonly raw?: boolean
  readonly save?: string
}

interface ShownMail {
  readonly octets: Buffer
  /** REST form; the parts are added to it. */
  readonly json: object
  readonly raw: string
  /** Printed before the mail. */
  readonly facts?: string
}

function showOptions(show: Command): Command {
  return show
    .option('--raw', 'print the source of the mail')
    .option('--save <folder>', 'save text, HTML and attachments to this folder; never overwrites files')
}

async function printMail(context: CliContext, options: ShowOptions, mail: ShownMail): Promise<void> {
  const { octets, json, raw, facts } = mail
  const view =
    options.raw === true && options.save === undefined ? undefined : await tryView(context, options, octets)
  const saved = view && options.save !== undefined ? await saveParts(view, options.save) : []
  const result = {
    ...json,
    ...(view && { content: viewToJson(view) }),
    ...(options.save !== undefined && { saved }),
  }
  printResult(context, options, result, () =>
    [
      ...(facts === undefined ? [] : [`${facts}\n`]),
      view && options.raw !== true ? shownView(view) : raw,
      ...(saved.length === 0 ? [] : ['', ...saved.map(file => `saved ${file}`)]),
    ].join('\n'),
  )
}

/** Fails if files were requested; otherwise reports the error and shows the source. */
async function tryView(
  context: CliContext,
  { save }: ShowOptions,
  octets: Buffer,
): Promise<MailView | undefined> {
  try {
    return await viewMail(octets)
  } catch (error) {
    if (save !== undefined || !(error instanceof AppError)) throw error
    context.complain(`postroad: ${error.message}`)
    return undefined
  }
}
