/** `postroad queue list|summary|show|hold|release|retry|delete`: by message id, domain, site or workspace, or everything. */
import type { Command } from 'commander'
import { AppError } from '../../core/errors.js'
import { partInWords, type NamedPart } from '../../queue/operator/change-queue.js'
import type { QueueChange } from '../../queue/operator/queue-admin-store.js'
import type { QueueChanged } from '../../queue/operator/queue-change-routes.js'
import type { QueueEntryView, QueueSummary } from '../../queue/operator/queue-routes.js'
import { withApi, type Api } from '../api.js'
import { printResult, table, UsageError, type CliContext, type CommonOptions } from '../context.js'
import { waitCell, waitText } from '../waits.js'
import { apiCommand, choice, confirm, confirmable, limited, type ConfirmOptions } from '../options.js'

const SUMMARY_ROWS = 50
const MAX_ENTRIES = 1_000

interface SelectOptions extends CommonOptions {
  readonly domain?: string
  readonly site?: string
  readonly workspace?: string
  readonly all?: boolean
}

interface SummaryOptions extends CommonOptions {
  readonly by?: 'domain' | 'site'
  readonly workspace?: string
  readonly limit: number
}

export function queueCommands(program: Command, context: CliContext): void {
  const group = program.command('queue').description('the delivery queue')
  limited(selectOptions(apiCommand(group, 'list', 'list queued messages, oldest first')), 100).action(
    async (options: SelectOptions & { limit: number }) => {
      if (partsOf(undefined, options).length > 1) throw oneOnly()
      await withApi(context, options, async api => {
        const entries = await listPart(api, readPart(undefined, options), options.limit)
        reportRestoreHold(context, await restoreHoldSince(api))
        printResult(context, options, entries, () => entryTable(entries, context.world.clock.now()))
      })
    },
  )
  const summary = apiCommand(
    group,
    'summary',
    'count queued messages by age and by destination or site',
  ).option('--workspace <name|id>', 'only mail of this workspace')
  choice(
    limited(summary, SUMMARY_ROWS),
    '--by <what>',
    ['domain', 'site'],
    'domain or site (default: domain)',
  ).action(async (options: SummaryOptions) => {
    await withApi(context, options, async ({ admin }) => {
      const { by = 'domain', limit, workspace } = options
      const query = { by, limit, workspace_id: workspace }
      const found = await admin.get<QueueSummary>('/queue/summary', query)
      reportRestoreHold(context, found.held_since_restore)
      printResult(context, options, found.rows, () => summaryTable(by, found.rows))
      reportRest(context, by, found)
    })
  })
  apiCommand(group, 'show <id>', 'show a queued message').action(
    async (id: string, options: CommonOptions) => {
      await withApi(context, options, async api => {
        const entry = await getEntry(api, id)
        printResult(context, options, entry, () => entryText(entry, context.world.clock.now()))
      })
    },
  )
  action(group, context, 'hold', 'hold messages')
  action(group, context, 'release', 'release held messages; --all also ends the hold after a restore')
  action(group, context, 'retry', 'retry messages now, ignoring site back-off')
  action(group, context, 'delete', 'delete messages from the queue')
}

function action(group: Command, context: CliContext, name: QueueChange, description: string): void {
  const asks = name === 'delete'
  const one = selectOptions(
    apiCommand(group, `${name} [id]`, `${description}: by id, --domain, --site, --workspace or --all`),
  )
  ;(asks ? confirmable(one) : one)
    .option('--all', 'everything')
    .action(async (id: string | undefined, options: SelectOptions & ConfirmOptions) => {
      if (partsOf(id, options).length !== 1) throw oneOnly()
      const named = readPart(id, options)
      if (asks && id === undefined) await confirm(context, options, `This deletes ${partInWords(named)}.`)
      await withApi(context, options, async api => {
        const part = readPart(id, options)
        const endsHold = name === 'release' && options.all === true
        const heldSince = endsHold ? await restoreHoldSince(api) : null
        const changed = await change(api, name, part, options.all)
        if (changed === 0) await reportNoChange(context, api, part, name)
        if (name === 'retry') reportHeld(context, await retried(api, part))
        if (heldSince !== null)
          context.complain(
            `the hold since the restore of ${heldSince} has ended: the whole queue is sent again`,
          )
        printResult(context, options, { changed }, () => `${changed} changed`)
      })
    })
}

function selectOptions(command: Command): Command {
  return command
    .option('--domain <domain>', 'mail to this domain')
    .option('--site <name>', 'mail to this site, as named by `queue summary --by site`')
    .option('--workspace <name|id>', 'mail of this workspace')
}

function partsOf(id: string | undefined, { domain, site, workspace, all }: SelectOptions) {
  return [id, domain, site, workspace, all].filter(value => value !== undefined)
}

function oneOnly(): UsageError {
  return new UsageError('pass exactly one of: a message id, --domain, --site, --workspace, --all')
}

function readPart(id: string | undefined, { domain, site, workspace }: SelectOptions): NamedPart {
  return { messageIds: id === undefined ? undefined : [id], domain, site, workspaceId: workspace }
}

/** Repeats the request until everything is changed. */
async function change(
  { admin }: Api,
  name: QueueChange,
  { messageIds, domain, site, workspaceId }: NamedPart,
  all: boolean | undefined,
): Promise<number> {
  const part = { message_ids: messageIds, domain, site, workspace_id: workspaceId, all }
  let changed = 0
  for (let after: string | undefined; ;) {
    const done = await admin.send<QueueChanged>('POST', `/queue/${name}`, { ...part, after })
    changed += done.changed
    if (done.next === null) return changed
    after = done.next
  }
}

function listPart(
  { admin }: Api,
  { domain: destination, site, workspaceId: workspace_id }: NamedPart,
  limit: number,
): Promise<QueueEntryView[]> {
  return admin.list('/queue', { destination, site, workspace_id }, limit)
}

/** @throws AppError not_found */
async function getEntry({ admin }: Api, id: string): Promise<QueueEntryView> {
  try {
    return await admin.get<QueueEntryView>(`/queue/${encodeURIComponent(id)}`)
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error
    throw new AppError('not_found', `message ${id} is not in the queue (see: postroad message show)`)
  }
}

/** Why a command did not change a message. */
const ALREADY: Readonly<Record<QueueChange, string>> = {
  hold: 'is already held',
  release: 'is not held',
  retry: 'is already due',
  delete: 'was not changed',
}

/** @throws AppError not_found for a message that is not queued */
async function reportNoChange(
  context: CliContext,
  api: Api,
  { site, messageIds }: NamedPart,
  name: QueueChange,
): Promise<void> {
  if (site !== undefined) context.complain(`no mail to ${name} for site ${site}`)
  const [id] = messageIds ?? []
  if (id === undefined) return
  await getEntry(api, id)
  context.complain(`message ${id} ${ALREADY[name]}`)
}

async function retried(api: Api, part: NamedPart): Promise<readonly QueueEntryView[]> {
  const [id] = part.messageIds ?? []
  if (id === undefined) return listPart(api, part, MAX_ENTRIES)
  // It may have been delivered by now.
  return getEntry(api, id).then(
    entry => [entry],
    () => [],
  )
}

/** Held messages are not tried even if they are due. */
function reportHeld(context: CliContext, entries: readonly QueueEntryView[]): void {
  const held = entries.filter(entry => entry.held).length
  if (held > 0) context.complain(`${held} of them are held; to send them: postroad queue release`)
  const paused = entries.filter(entry => entry.campaign_paused).length
  if (paused > 0)
    context.complain(`${paused} of them belong to a paused campaign; to send them: postroad campaign resume`)
}

/** @returns RFC 3339, or null if there is no such hold */
async function restoreHoldSince({ admin }: Api): Promise<string | null> {
  return (await admin.get<{ held_since: string | null }>('/queue/hold-after-restore')).held_since
}

/** Prints how many rows were left out. */
function reportRest(context: CliContext, by: 'domain' | 'site', { rows, found, total }: QueueSummary): void {
  const more = found - rows.length
  if (more <= 0) return
  const shown = rows.reduce((sum, row) => sum + row.total, 0)
  const what = by === 'site' ? 'site' : 'destination'
  context.complain(
    `${more} more ${what}${more === 1 ? '' : 's'} with ${total - shown} messages (of ${total} in all); --limit shows more`,
  )
}

function reportRestoreHold(context: CliContext, since: string | null): void {
  if (since !== null)
    context.complain(
      `held since the restore of ${since}: nothing is sent until you run \`postroad queue release --all\``,
    )
}

function summaryTable(by: 'domain' | 'site', rows: QueueSummary['rows']): string {
  const ages = Object.keys(rows[0]?.by_age ?? {})
  const head = by === 'site' ? ['SITE', 'DOMAINS'] : ['DESTINATION']
  return table(
    [...head, 'TOTAL', 'HELD', ...ages],
    rows.map(({ site, destination, destinations, total, held, by_age: byAge }) => [
      ...(by === 'site' ? [site ?? '', destinations ?? 0] : [destination ?? '']),
      total,
      held,
      ...ages.map(age => byAge[age] ?? 0),
    ]),
  )
}

function entryTable(entries: readonly QueueEntryView[], now: number): string {
  return table(
    ['ID', 'TO', 'ATTEMPTS', 'NEXT ATTEMPT', 'WAITS FOR', 'LAST REPLY'],
    entries.map(entry => [
      entry.message_id,
      entry.to,
      entry.attempts,
      nextAttemptOf(entry, now),
      waitCell(entry.waiting_for),
      entry.last_reply,
    ]),
  )
}

function entryText(entry: QueueEntryView, now: number): string {
  const facts: [string, string | number][] = [
    ['message', entry.message_id],
    ['to', entry.to],
    ['workspace', entry.workspace_id],
    ['attempts', entry.attempts],
    ['next attempt', nextAttemptOf(entry, now)],
    ['waits for', waitText(entry.waiting_for) ?? '-'],
    ['expires', entry.expires_at],
    ['queued', entry.enqueued_at],
    ['last reply', entry.last_reply ?? '-'],
  ]
  return facts.map(([name, value]) => `${name.padEnd(13)} ${value}`).join('\n')
}

/** Deleted mail is only listed while its last attempt is in progress. */
function nextAttemptOf(entry: QueueEntryView, now: number): string {
  if (entry.deleted) return 'deleted'
  if (entry.held) return 'held'
  if (entry.campaign_paused) return 'campaign paused'
  const at = entry.next_attempt_at
  return Date.parse(at) <= now ? `due since ${at}` : at
}
