/** `postroad queue list|summary|show|hold|release|retry|delete`: by message id, by domain, or all. */
import type { Command } from 'commander'
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import { formatDuration } from '../core/units.js'
import type { Tx } from '../db/database.js'
import {
  deleteEntries,
  listEntries,
  retryNow,
  setHeld,
  summarize,
  type QueueListEntry,
  type QueueSelection,
} from '../queue/queue-admin-store.js'
import {
  command,
  printResult,
  table,
  UsageError,
  wholeNumber,
  withAppliance,
  type CliContext,
  type CommonOptions,
} from './context.js'

interface SelectOptions extends CommonOptions {
  readonly domain?: string
  readonly all?: boolean
}

const AGE_BOUNDS_MS = [5, 10, 20, 40, 80, 160, 320, 640, 1280].map(minutes => minutes * 60_000)

export function queueCommands(program: Command, context: CliContext): void {
  const group = program.command('queue').description('mail that waits to be delivered')
  command(group, 'list', 'waiting messages, longest waiting first')
    .option('--domain <domain>', 'to this domain only')
    .option('--limit <n>', 'at most so many (default: 100)', wholeNumber)
    .action(async (options: SelectOptions & { limit?: number }) => {
      await withAppliance(context, options, async ({ database }) => {
        const selection =
          options.domain === undefined ? { isAll: true as const } : { destination: options.domain }
        const entries = await listEntries(database.reader, selection, options.limit ?? 100)
        printResult(context, options, entries.map(toJson), () => entryTable(entries))
      })
    })
  command(group, 'summary', 'how many wait, by age and destination')
    .option('--limit <n>', 'destinations at most (default: 50)', wholeNumber)
    .action(async (options: CommonOptions & { limit?: number }) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const rows = await summarize(database.reader, world.clock.now(), AGE_BOUNDS_MS, options.limit ?? 50)
        const ages = [...AGE_BOUNDS_MS.map(bound => formatDuration(bound)), 'older']
        const json = rows.map(({ destination, total, held, byAge }) => ({
          destination,
          total,
          held,
          by_age: Object.fromEntries(ages.map((age, index) => [age, byAge[index] ?? 0])),
        }))
        printResult(context, options, json, () =>
          table(
            ['DESTINATION', 'TOTAL', 'HELD', ...ages],
            rows.map(row => [row.destination, row.total, row.held, ...row.byAge]),
          ),
        )
      })
    })
  command(group, 'show <id>', 'one waiting message').action(async (id: string, options: CommonOptions) => {
    await withAppliance(context, options, async ({ database }) => {
      const [entry] = await listEntries(database.reader, { messageId: id }, 1)
      if (!entry)
        throw new AppError('not_found', `message ${id} is not in the queue (see: postroad message show)`)
      printResult(context, options, toJson(entry), () => JSON.stringify(toJson(entry), null, 2))
    })
  })
  action(group, context, 'hold', 'keep messages back', (tx, selection) => setHeld(tx.db, selection, true))
  action(group, context, 'release', 'let held messages go', (tx, selection) =>
    setHeld(tx.db, selection, false),
  )
  action(group, context, 'retry', 'make messages due now', (tx, selection, now) =>
    retryNow(tx.db, selection, now),
  )
  action(group, context, 'delete', 'take messages out of the queue', deleteEntries, true)
}

type Change = (tx: Tx, selection: QueueSelection, now: number) => Promise<number>

/** @param isBatched the change does a part at a time and is asked until nothing is left */
function action(
  group: Command,
  context: CliContext,
  name: string,
  description: string,
  change: Change,
  isBatched = false,
): void {
  command(group, `${name} [id]`, `${description}: by id, --domain or --all`)
    .option('--domain <domain>', 'all to this domain')
    .option('--all', 'everything')
    .action(async (id: string | undefined, options: SelectOptions) => {
      const selection = readSelection(id, options)
      await withAppliance(context, options, async ({ database, world }) => {
        let changed = 0
        let part: number
        do {
          part = await database.write(tx => change(tx, selection, world.clock.now()))
          changed += part
        } while (isBatched && part > 0)
        if (changed === 0 && 'messageId' in selection) context.fail()
        printResult(context, options, { changed }, () => `${changed} changed`)
      })
    })
}

function readSelection(id: string | undefined, { domain, all }: SelectOptions): QueueSelection {
  const given = [id, domain, all].filter(value => value !== undefined)
  if (given.length !== 1) throw new UsageError('name one of: a message id, --domain, --all')
  if (id !== undefined) return { messageId: id }
  return domain === undefined ? { isAll: true } : { destination: domain.toLowerCase() }
}

function entryTable(entries: readonly QueueListEntry[]): string {
  return table(
    ['ID', 'TO', 'ATTEMPTS', 'NEXT ATTEMPT', 'LAST REPLY'],
    entries.map(entry => [
      entry.messageId,
      entry.recipient,
      entry.attempts,
      entry.isHeld ? 'held' : isoTime(entry.nextAttemptAt),
      entry.lastSummary,
    ]),
  )
}

function toJson(entry: QueueListEntry) {
  return {
    message_id: entry.messageId,
    workspace_id: entry.workspaceId,
    to: entry.recipient,
    destination: entry.destination,
    attempts: entry.attempts,
    held: entry.isHeld,
    next_attempt_at: isoTime(entry.nextAttemptAt),
    expires_at: isoTime(entry.expiresAt),
    enqueued_at: isoTime(entry.enqueuedAt),
    last_reply: entry.lastSummary,
  }
}
