/**
 * Asks before something is destroyed: on a terminal the person, elsewhere for `--yes`.
 *
 * Called by commands before they change anything. Fails: a UsageError where nobody can be asked and nothing was said, `NotConfirmed`
 * where the answer is no.
 */
import type { Command } from 'commander'
import { UsageError, type CliContext, type CommonOptions } from './context.js'

export interface ConfirmOptions extends CommonOptions {
  readonly yes?: boolean
}

/** The person at the terminal said no: nothing was done. */
export class NotConfirmed extends Error {
  override readonly name = 'NotConfirmed'
}

export function confirmable(command: Command): Command {
  return command.option('--yes', 'do not ask')
}

/** @param what e.g. `This takes 12 messages out of the queue.` */
export async function confirm(context: CliContext, options: ConfirmOptions, what: string): Promise<void> {
  if (options.yes === true) return
  if (context.ask === undefined) throw new UsageError(`${what} Say --yes to do it.`)
  const answer = await context.ask(`${what} Do it? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new NotConfirmed('nothing was done')
}
