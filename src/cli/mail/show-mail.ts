/**
 * Shows one mail: readable, as source with `--raw`, or its parts saved with `--save`.
 *
 * Used by `capture show` and `inbound show`. A mail that exceeds the parser's limits is shown as source.
 */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { printResult, type CliContext, type CommonOptions } from '../context.js'
import { saveParts, shownView, viewMail, viewToJson, type MailView } from './mail-view.js'

export interface ShowOptions extends CommonOptions {
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

export function showOptions(show: Command): Command {
  return show
    .option('--raw', 'print the source of the mail')
    .option('--save <folder>', 'save text, HTML and attachments to this folder; never overwrites files')
}

export async function printMail(context: CliContext, options: ShowOptions, mail: ShownMail): Promise<void> {
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
