/** `postroad queue list|summary|show|hold|release|retry|delete`: by message id, domain, site or workspace, or everything. */
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import { formatDuration } from '../../core/units.js'
import { endRestoreHold, findRestoreHold } from '../../accounts/restore-hold-store.js'
import {
  deleteEntries,
  listEntries,
  retryNow,
  setHeld,
  summarize,
  type QueueListEntry,
  type QueueSelection,
  type SummaryRow,
} from '../../queue/operator/queue-admin-store.js'
import { QUEUE_RETRY_PATH } from '../../queue/operator/queue-status-routes.js'
import { locateAll } from '../../queue/operator/queue-status.js'
import { siteLocator } from '../../appliance/open-delivery.js'
import { printResult, table, withAppliance, type CliContext, type CommonOptions } from '../context.js'
import { choice, confirm, confirmable, type ConfirmOptions, command, limited } from '../options.js'
import {
  changeInBatches,
  type Change,
  recorded,
  readSelection,
  resolveSelection,
  selectOptions,
  type SelectOptions,
} from './queue-selection.js'
import { askServer } from '../running-server.js'

const SUMMARY_ROWS = 50
const MAX_ENTRIES = 1_000
const AGE_BOUNDS_MS = [5, 10, 20, 40, 80, 160, 320, 640, 1280].map(minutes => minutes * 60_000)
const AGES = [...AGE_BOUNDS_MS.map(bound => formatDuration(bound)), 'older']

export function queueCommands(program: Command, context: CliContext): void {
  const group = program.command('queue').description('the delivery queue')
  limited(selectOptions(command(group, 'list', 'list queued messages, oldest first')), 100).action(
    async (options: SelectOptions & { limit: number }) => {
      const named = readSelection(undefined, options, { isAll: true })
      await withAppliance(context, options, async appliance => {
        const selection = await resolveSelection(appliance, named)
        const entries = await listEntries(appliance.database.reader, selection, options.limit)
        await reportRestoreHold(context, appliance)
        printResult(context, options, entries.map(toJson), () =>
          entryTable(entries, appliance.world.clock.now()),
        )
      })
    },
  )
  const summary = command(group, 'summary', 'count queued messages by age and by destination or site')
  choice(
    limited(summary, SUMMARY_ROWS),
    '--by <what>',
    ['domain', 'site'],
    'domain or site (default: domain)',
  ).action(async (options: CommonOptions & { by?: 'domain' | 'site'; limit: number }) => {
    await withAppliance(context, options, async appliance => {
      await reportRestoreHold(context, appliance)
      if (options.by === 'site') await summaryBySite(context, options, appliance)
      else await summaryByDomain(context, options, appliance)
    })
  })
  command(group, 'show <id>', 'show a queued message').action(async (id: string, options: CommonOptions) => {
    await withAppliance(context, options, async ({ database, world }) => {
      const [entry] = await listEntries(database.reader, { messageId: id }, 1)
      if (!entry) throw notQueued(id)
      printResult(context, options, toJson(entry), () => entryText(entry, world.clock.now()))
    })
  })
  action(group, context, 'hold', 'hold messages', (tx, selection) => setHeld(tx.db, selection, true))
  action(
    group,
    context,
    'release',
    'release held messages; --all also ends the hold after a restore',
    (tx, selection) => setHeld(tx.db, selection, false),
    endHold,
  )
  action(
    group,
    context,
    'retry',
    'retry messages now, ignoring site back-off',
    (tx, selection, now) => retryNow(tx.db, selection, now),
    (appliance, selection) => resetBackOff(context, appliance, selection),
  )
  action(group, context, 'delete', 'delete messages from the queue', deleteEntries)
}

function action(
  group: Command,
  context: CliContext,
  name: string,
  description: string,
  change: Change,
  afterwards?: (appliance: Appliance, selection: QueueSelection) => Promise<void>,
): void {
  const asks = name === 'delete'
  const one = selectOptions(
    command(group, `${name} [id]`, `${description}: by id, --domain, --site, --workspace or --all`),
  )
  ;(asks ? confirmable(one) : one)
    .option('--all', 'everything')
    .action(async (id: string | undefined, options: SelectOptions & ConfirmOptions) => {
      const named = readSelection(id, options)
      if (asks && !('messageId' in named)) await confirm(context, options, `This deletes ${inWords(named)}.`)
      await withAppliance(context, options, async appliance => {
        const selection = await resolveSelection(appliance, named)
        const note = recorded(context, appliance, name, inWords(named), change)
        const changed = await changeInBatches(appliance, selection, note.change).finally(() => note.write())
        await afterwards?.(appliance, selection)
        if (changed === 0) await reportNoChange(context, appliance, named, name)
        if (name === 'retry') await reportHeld(context, appliance, selection)
        printResult(context, options, { changed }, () => `${changed} changed`)
      })
    })
}

/** With more destinations than this, the back-off of all sites is reset. */
const MAX_NAMED = 1_000

/** The server notices due messages itself, but site back-off is only in its memory. */
async function resetBackOff(
  context: CliContext,
  appliance: Appliance,
  selection: QueueSelection,
): Promise<void> {
  const destinations = await destinationsIn(appliance, selection)
  const named = destinations && destinations.length <= MAX_NAMED ? { destinations } : {}
  const { serving, trouble } = await askServer(appliance, 'POST', QUEUE_RETRY_PATH, named)
  if (serving && trouble !== null) context.complain(`site back-off not reset: ${trouble}`)
}

/** @returns undefined for all destinations */
async function destinationsIn(
  { database }: Appliance,
  selection: QueueSelection,
): Promise<readonly string[] | undefined> {
  if ('destination' in selection) return [selection.destination]
  if ('destinations' in selection) return selection.destinations
  if (!('messageId' in selection)) return undefined
  return (await listEntries(database.reader, selection, 1)).map(entry => entry.destination)
}

/** Ends the hold that `postroad restore` sets. */
async function endHold({ database }: Appliance, selection: QueueSelection): Promise<void> {
  if ('isAll' in selection) await database.write(tx => endRestoreHold(tx.db))
}

/** Why a command did not change a message. */
const ALREADY: Readonly<Record<string, string>> = {
  hold: 'is already held',
  release: 'is not held',
  retry: 'is already due',
}

/** @throws AppError not_found for a message that is not queued */
async function reportNoChange(
  context: CliContext,
  { database }: Appliance,
  named: ReturnType<typeof readSelection>,
  name: string,
): Promise<void> {
  if ('site' in named) context.complain(`no mail to ${name} for site ${named.site}`)
  if (!('messageId' in named)) return
  const [entry] = await listEntries(database.reader, named, 1)
  if (!entry) throw notQueued(named.messageId)
  context.complain(`message ${named.messageId} ${ALREADY[name] ?? 'was not changed'}`)
}

function notQueued(id: string): AppError {
  return new AppError('not_found', `message ${id} is not in the queue (see: postroad message show)`)
}

function inWords(named: ReturnType<typeof readSelection>): string {
  if ('messageId' in named) return `message ${named.messageId}`
  if ('messageIds' in named) return `${named.messageIds.length} messages`
  if ('destinations' in named) return `all queued mail for ${named.destinations.join(', ')}`
  if ('destination' in named) return `all queued mail for ${named.destination}`
  if ('site' in named) return `all queued mail for site ${named.site}`
  if ('workspaceId' in named) return `all queued mail of workspace ${named.workspaceId}`
  return 'all queued mail'
}

/** Held messages are not tried even if they are due. */
async function reportHeld(
  context: CliContext,
  { database }: Appliance,
  selection: QueueSelection,
): Promise<void> {
  const entries = await listEntries(database.reader, selection, MAX_ENTRIES)
  const held = entries.filter(({ isHeld }) => isHeld).length
  if (held > 0) context.complain(`${held} of them are held; to send them: postroad queue release`)
  const paused = entries.filter(({ isCampaignPaused }) => isCampaignPaused).length
  if (paused > 0)
    context.complain(`${paused} of them belong to a paused campaign; to send them: postroad campaign resume`)
}

async function reportRestoreHold(context: CliContext, { database }: Appliance): Promise<void> {
  const since = await findRestoreHold(database.reader)
  if (since !== undefined)
    context.complain(
      `held since the restore of ${isoTime(since)}: nothing is sent until you run \`postroad queue release --all\``,
    )
}

interface SummaryOptions extends CommonOptions {
  readonly limit: number
}

async function summaryByDomain(
  context: CliContext,
  options: SummaryOptions,
  { database, world }: Appliance,
): Promise<void> {
  const limit = options.limit
  const rows = await summarize(database.reader, world.clock.now(), AGE_BOUNDS_MS, limit)
  const json = rows.map(row => ({ destination: row.destination, ...countsToJson(row) }))
  printResult(context, options, json, () =>
    table(
      ['DESTINATION', 'TOTAL', 'HELD', ...AGES],
      rows.map(row => [row.destination, row.total, row.held, ...row.byAge]),
    ),
  )
}

async function summaryBySite(
  context: CliContext,
  options: SummaryOptions,
  appliance: Appliance,
): Promise<void> {
  const { database, world } = appliance
  const rows = await summarize(database.reader, world.clock.now(), AGE_BOUNDS_MS, undefined)
  const destinations = rows.map(row => row.destination)
  const sites = sumBySite(rows, await locateAll(destinations, siteLocator(appliance)))
  const shown = sites.slice(0, options.limit)
  const json = shown.map(row => ({
    site: row.site,
    destinations: row.destinations,
    ...countsToJson(row),
  }))
  printResult(context, options, json, () =>
    table(
      ['SITE', 'DOMAINS', 'TOTAL', 'HELD', ...AGES],
      shown.map(row => [row.site, row.destinations, row.total, row.held, ...row.byAge]),
    ),
  )
}

type Counts = Pick<SummaryRow, 'total' | 'held' | 'byAge'>

interface SiteSummary extends Counts {
  readonly site: string
  /** The number of its destinations that have mail. */
  readonly destinations: number
}

function sumBySite(rows: readonly SummaryRow[], siteOf: ReadonlyMap<string, string>): SiteSummary[] {
  const sites = new Map<string, SiteSummary>()
  for (const { destination, total, held, byAge } of rows) {
    const site = siteOf.get(destination) ?? destination
    const sum = sites.get(site) ?? { site, destinations: 0, total: 0, held: 0, byAge: AGES.map(() => 0) }
    sites.set(site, {
      site,
      destinations: sum.destinations + 1,
      total: sum.total + total,
      held: sum.held + held,
      byAge: sum.byAge.map((count, index) => count + (byAge[index] ?? 0)),
    })
  }
  return [...sites.values()].sort((a, b) => b.total - a.total || (a.site < b.site ? -1 : 1))
}

function countsToJson({ total, held, byAge }: Counts) {
  return {
    total,
    held,
    by_age: Object.fromEntries(AGES.map((age, index) => [age, byAge[index] ?? 0])),
  }
}

function entryTable(entries: readonly QueueListEntry[], now: number): string {
  return table(
    ['ID', 'TO', 'ATTEMPTS', 'NEXT ATTEMPT', 'LAST REPLY'],
    entries.map(entry => [
      entry.messageId,
      entry.recipient,
      entry.attempts,
      nextAttemptOf(entry, now),
      entry.lastSummary,
    ]),
  )
}

function entryText(entry: QueueListEntry, now: number): string {
  const facts: [string, string | number][] = [
    ['message', entry.messageId],
    ['to', entry.recipient],
    ['workspace', entry.workspaceId],
    ['attempts', entry.attempts],
    ['next attempt', nextAttemptOf(entry, now)],
    ['expires', isoTime(entry.expiresAt)],
    ['queued', isoTime(entry.enqueuedAt)],
    ['last reply', entry.lastSummary ?? '-'],
  ]
  return facts.map(([name, value]) => `${name.padEnd(13)} ${value}`).join('\n')
}

/** Deleted mail is only listed while its last attempt is in progress. */
function nextAttemptOf(entry: QueueListEntry, now: number): string {
  const { isWithdrawn, isHeld, isCampaignPaused, nextAttemptAt } = entry
  if (isWithdrawn) return 'deleted'
  if (isHeld) return 'held'
  if (isCampaignPaused) return 'campaign paused'
  return nextAttemptAt <= now ? `due since ${isoTime(nextAttemptAt)}` : isoTime(nextAttemptAt)
}

function toJson(entry: QueueListEntry) {
  return {
    message_id: entry.messageId,
    workspace_id: entry.workspaceId,
    to: entry.recipient,
    destination: entry.destination,
    attempts: entry.attempts,
    held: entry.isHeld,
    campaign_paused: entry.isCampaignPaused,
    deleted: entry.isWithdrawn,
    next_attempt_at: isoTime(entry.nextAttemptAt),
    expires_at: isoTime(entry.expiresAt),
    enqueued_at: isoTime(entry.enqueuedAt),
    last_reply: entry.lastSummary,
  }
}
