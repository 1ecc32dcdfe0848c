/** `postroad inbound list|show|reprocess`: bounces, complaints and reports received. */
import { given } from '../../core/given.js'
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import {
  findInboundMail,
  listInboundMails,
  markUnprocessed,
  readInboundOctets,
  type InboundMail,
} from '../../inbound/inbound-mail-store.js'
import { printable } from './mail-view.js'
import { printMail, showOptions, type ShowOptions } from './show-mail.js'
import {
  command,
  limited,
  printResult,
  table,
  UsageError,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from '../context.js'

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
