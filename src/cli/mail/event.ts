/**
 * `postroad event list|retry|drop`: events that a consumer failed to process and set aside.
 *
 * A running server retries marked events within a minute.
 */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import {
  dropSetAside,
  listSetAside,
  requestRetry,
  type SetAsideEvent,
  type SetAsideSelection,
} from '../../events/set-aside-store.js'
import {
  printResult,
  table,
  UsageError,
  withAppliance,
  type CliContext,
  type CommonOptions,
  type ListOptions,
} from '../context.js'
import { command, limited } from '../options.js'

interface SelectOptions extends CommonOptions {
  readonly all?: boolean
}

export function eventCommands(program: Command, context: CliContext): void {
  const group = program.command('event').description('events that could not be processed and were set aside')
  limited(command(group, 'list', 'list events set aside, oldest first'), 100).action(
    async (options: ListOptions) => {
      await withAppliance(context, options, async ({ database }) => {
        const all = await listSetAside(database.reader, options.limit)
        printResult(context, options, all.map(toJson), () => asTable(all))
      })
    },
  )
  change(group, context, 'retry', 'retry events', 'marked for retry', requestRetry)
  change(group, context, 'drop', 'discard events without processing them', 'dropped', dropSetAside)
}

type Change = (db: Queries, selection: SetAsideSelection) => Promise<number>

function change(
  group: Command,
  context: CliContext,
  name: string,
  description: string,
  done: string,
  work: Change,
): void {
  command(group, `${name} [consumer] [number]`, `${description}: by consumer and number, or --all`)
    .option('--all', 'everything')
    .action(async (consumer: string | undefined, number: string | undefined, options: SelectOptions) => {
      const selection = readSelection(consumer, number, options)
      await withAppliance(context, options, async ({ database }) => {
        const changed = await database.write(tx => work(tx.db, selection))
        if (changed === 0 && 'seq' in selection)
          throw new AppError('not_found', `no event ${selection.seq} of ${selection.consumer} is set aside`)
        printResult(context, options, { changed }, () => `${changed} ${done}`)
      })
    })
}

function readSelection(
  consumer: string | undefined,
  number: string | undefined,
  { all = false }: SelectOptions,
): SetAsideSelection {
  if (all && consumer === undefined) return { isAll: true }
  if (all || consumer === undefined || number === undefined)
    throw new UsageError('pass a consumer and a number as printed by `event list`, or --all')
  if (!/^\d{1,15}$/.test(number)) throw new UsageError(`${number} is not a whole number`)
  return { consumer, seq: Number(number) }
}

function asTable(all: readonly SetAsideEvent[]): string {
  return table(
    ['CONSUMER', 'NUMBER', 'EVENT', 'MESSAGE', 'SET ASIDE', 'ERROR'],
    all.map(({ consumer, event, setAsideAt, error }) => [
      consumer,
      event.seq,
      event.kind,
      event.messageId,
      isoTime(setAsideAt),
      error,
    ]),
  )
}

function toJson({ consumer, event, error, setAsideAt }: SetAsideEvent) {
  return {
    consumer,
    number: event.seq,
    event: event.kind,
    workspace_id: event.workspaceId,
    message_id: event.messageId,
    occurred_at: isoTime(event.occurredAt),
    set_aside_at: isoTime(setAsideAt),
    error,
  }
}
