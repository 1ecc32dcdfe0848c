/**
 * `postroad event list|retry|drop`: events that a consumer failed to process and set aside.
 *
 * A running server retries marked events within a minute.
 */
import type { Command } from 'commander'
import type { SetAsideView } from '../../resource/set-aside-routes.js'
import { withApi } from '../api.js'
import {
  printResult,
  table,
  UsageError,
  type CliContext,
  type CommonOptions,
  type ListOptions,
} from '../context.js'
import { apiCommand, limited } from '../options.js'

interface SelectOptions extends CommonOptions {
  readonly all?: boolean
}

export function eventCommands(program: Command, context: CliContext): void {
  const group = program.command('event').description('events that could not be processed and were set aside')
  limited(apiCommand(group, 'list', 'list events set aside, oldest first'), 100).action(
    async (options: ListOptions) => {
      await withApi(context, options, async ({ admin }) => {
        const all = await admin.list<SetAsideView>('/events/set-aside', {}, options.limit)
        printResult(context, options, all, () => asTable(all))
      })
    },
  )
  change(group, context, 'retry', 'retry events', 'marked for retry')
  change(group, context, 'drop', 'discard events without processing them', 'dropped')
}

function change(
  group: Command,
  context: CliContext,
  name: 'retry' | 'drop',
  description: string,
  done: string,
): void {
  apiCommand(group, `${name} [consumer] [number]`, `${description}: by consumer and number, or --all`)
    .option('--all', 'everything')
    .action(async (consumer: string | undefined, number: string | undefined, options: SelectOptions) => {
      const selection = readSelection(consumer, number, options)
      await withApi(context, options, async ({ admin }) => {
        const path = `/events/set-aside/${name}`
        const { changed } = await admin.send<{ changed: number }>('POST', path, selection)
        printResult(context, options, { changed }, () => `${changed} ${done}`)
      })
    })
}

/** @throws UsageError */
function readSelection(
  consumer: string | undefined,
  number: string | undefined,
  { all = false }: SelectOptions,
): object {
  if (all && consumer === undefined) return { all }
  if (all || consumer === undefined || number === undefined)
    throw new UsageError('pass a consumer and a number as printed by `event list`, or --all')
  if (!/^\d{1,15}$/.test(number)) throw new UsageError(`${number} is not a whole number`)
  return { consumer, number: Number(number) }
}

function asTable(all: readonly SetAsideView[]): string {
  return table(
    ['CONSUMER', 'NUMBER', 'EVENT', 'MESSAGE', 'SET ASIDE', 'ERROR'],
    all.map(one => [one.consumer, one.number, one.event, one.message_id, one.set_aside_at, one.error]),
  )
}
