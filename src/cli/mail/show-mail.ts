/**
 * Showing one mail: readable, as it is with `--raw`, or its parts saved with `--save`.
 *
 * Used by `capture show` and `inbound show`. A mail that is beyond the bounds of what is taken apart is shown as it is.
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
  /** REST form, to which the parts are added. */
  readonly json: object
  /** The whole mail as text. */
  readonly raw: string
  /** What is told before the mail. */
  readonly facts?: string
}

export function showOptions(show: Command): Command {
  return show
    .option('--raw', 'the mail as it is, source and all')
    .option('--save <folder>', 'write its text, HTML and attachments there; nothing is written over')
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

/** Whoever wants files is told why there are none; who only looks sees the source. */
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
