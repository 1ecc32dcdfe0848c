/**
 * Confirmation of destructive commands: a prompt on a terminal, `--yes` elsewhere.
 *
 * Throws a UsageError without a terminal or `--yes`, `NotConfirmed` if the user declines.
 */
import type { Command } from 'commander'
import { UsageError, type CliContext, type CommonOptions } from './context.js'

export interface ConfirmOptions extends CommonOptions {
  readonly yes?: boolean
}

/** The user declined; nothing was changed. */
export class NotConfirmed extends Error {
  override readonly name = 'NotConfirmed'
}

export function confirmable(command: Command): Command {
  return command.option('--yes', 'do not ask for confirmation')
}

/** @param what e.g. `This takes 12 messages out of the queue.` */
export async function confirm(context: CliContext, options: ConfirmOptions, what: string): Promise<void> {
  if (options.yes === true) return
  if (context.ask === undefined) throw new UsageError(`${what} To confirm, pass --yes.`)
  const answer = await context.ask(`${what} Continue? [y/N] `)
  if (!/^y(es)?$/i.test(answer.trim())) throw new NotConfirmed('cancelled; nothing was changed')
}
