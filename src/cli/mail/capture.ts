/** `postroad capture list|show`: the local inbox, which `mta.capture` fills instead of sending mail. */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { octetsToText } from '../../mail/mime/charset.js'
import { headToApi } from '../../messages/capture-routes.js'
import { findCapturedMail, listCapturedMails } from '../../messages/capture-store.js'
import { printMail, showOptions, type ShowOptions } from './show-mail.js'
import {
  command,
  limited,
  printResult,
  table,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from '../context.js'

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
