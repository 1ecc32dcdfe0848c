/**
 * `postroad inbound list|show|reprocess`: bounces, complaints and reports received. `postroad capture list|show`: the local inbox, which
 * `mta.capture` fills instead of sending mail.
 *
 * A mail is shown readable, as source with `--raw`, or its parts are saved with `--save`. One that exceeds the parser's limits is shown as
 * source.
 */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import {
  findInboundMail,
  type InboundMail,
  listInboundMails,
  markUnprocessed,
  readInboundOctets,
} from '../../inbound/inbound-mail-store.js'
import { octetsToText } from '../../mail/mime/charset.js'
import { headToApi } from '../../messages/capture-routes.js'
import { findCapturedMail, listCapturedMails } from '../../messages/capture-store.js'
import {
  type CliContext,
  type CommonOptions,
  printResult,
  table,
  UsageError,
  withAppliance,
} from '../context.js'
import { command, limited } from '../options.js'
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
  command(group, 'reprocess <id>', 'parse a mail again, e.g. after an upgrade').action(
    async (id: string, options: CommonOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const seq = readNumber(id)
        if (!(await database.write(tx => markUnprocessed(tx.db, seq)))) throw noSuchMail(id)
        const text = `mail ${seq} will be parsed again within seconds, or when the server starts`
        printResult(context, options, { id: seq, status: 'waiting' }, () => text)
      })
    },
  )
}

function listCommand(group: Command, context: CliContext): void {
  limited(command(group, 'list', 'list inbound mail, newest first'), 50)
    .option('--result <result>', 'only this result, e.g. bounce, unconfirmed, forged, failed')
    .option('--waiting', 'only mail not parsed yet')
    .action(async (options: ListOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const filter = {
          ...given({ result: options.result, isWaiting: options.waiting }),
        }
        const page = { limit: options.limit, offset: 0 }
        const mails = await listInboundMails(database.reader, filter, page)
        printResult(context, options, mails.map(toJson), () =>
          table(
            ['ID', 'RECEIVED', 'FROM', 'SIZE', 'RESULT', 'TO'],
            mails.map(mail => [
              mail.seq,
              isoTime(mail.receivedAt),
              `<${mail.envelopeSender}>`,
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
  showOptions(command(group, 'show <id>', 'show an inbound mail and its result')).action(
    async (id: string, options: ShowOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const mail = await findInboundMail(database.reader, readNumber(id))
        if (!mail) throw noSuchMail(id)
        const octets = await readInboundOctets(database.reader, mail)
        const raw = octets.toString('latin1')
        const what = { octets, json: { ...toJson(mail), raw }, raw: printable(raw), facts: factsOf(mail) }
        await printMail(context, options, what)
      })
    },
  )
}

function factsOf(mail: InboundMail): string {
  const facts = [
    ['mail', String(mail.seq)],
    [
      'received',
      `${isoTime(mail.receivedAt)} from ${mail.heloName} [${mail.peerAddress}], session ${mail.session}`,
    ],
    ['sender', `<${mail.envelopeSender}>`],
    ...mail.recipients.map(({ address, purpose, messageId }) => [
      'recipient',
      `<${address}> (${purpose}${messageId === undefined ? '' : `, message ${messageId}`})`,
    ]),
    ['processed', isoTimeOrNull(mail.processedAt) ?? 'not yet'],
    ...mail.findings.map(({ result, messageId, isConfirmed, detail }) => [
      'result',
      [
        result,
        messageId === undefined ? '' : `message ${messageId}`,
        isConfirmed === false ? 'not confirmed' : '',
        detail ?? '',
      ]
        .filter(part => part !== '')
        .join(', '),
    ]),
  ]
  return facts.map(([name = '', value = '']) => printable(`${name.padEnd(10)} ${value}`)).join('\n')
}

function toJson(mail: InboundMail) {
  return {
    id: mail.seq,
    received_at: isoTime(mail.receivedAt),
    processed_at: isoTimeOrNull(mail.processedAt),
    result: mail.result,
    sender: mail.envelopeSender,
    recipients: mail.recipients.map(({ address, purpose, messageId }) => ({
      address,
      purpose,
      message_id: messageId ?? null,
    })),
    findings: mail.findings.map(({ recipient, result, messageId, isConfirmed, detail }) => ({
      recipient,
      result,
      message_id: messageId ?? null,
      confirmed: isConfirmed ?? null,
      detail: detail ?? null,
    })),
    size: mail.size,
    peer_address: mail.peerAddress,
    helo: mail.heloName,
    session: mail.session,
  }
}

function readNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError(`${text} is not the number of an inbound mail`)
  return Number(text)
}

function noSuchMail(id: string): AppError {
  return new AppError('not_found', `no inbound mail ${id}`)
}

export function captureCommands(program: Command, context: CliContext): void {
  const group = program.command('capture').description('the local inbox of mta.capture')
  limited(command(group, 'list', 'list captured mail, newest first'), 50).action(
    async (options: CommonOptions & { limit: number }) => {
      await withAppliance(context, options, async ({ database }) => {
        const { items } = await listCapturedMails(database.reader, { limit: options.limit, offset: 0 })
        printResult(context, options, items.map(headToApi), () =>
          table(
            ['ID', 'CAUGHT', 'TO', 'SIZE', 'SUBJECT'],
            items.map(mail => [mail.id, isoTime(mail.capturedAt), mail.recipient, mail.size, mail.subject]),
          ),
        )
      })
    },
  )
  showOptions(command(group, 'show <id>', 'show a mail by number or message id')).action(
    async (id: string, options: ShowOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const mail = await findCapturedMail(database.reader, id)
        if (!mail) throw new AppError('not_found', `no mail ${id} in the local inbox`)
        const octets = Buffer.from(mail.raw)
        const raw = octetsToText(octets)
        const head = headToApi({ ...mail, size: octets.length })
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
