/**
 * The part of the queue that a command works on (a message, domain, site, workspace, or everything), and changing it in batches.
 *
 * A site's destinations are found as the running server finds them, by resolving every queued destination. Operators' changes are recorded in
 * the activity log of each workspace concerned, after the change; if the database fails in between, earlier batches remain changed.
 * Throws a UsageError unless exactly one part is given.
 */
import { userInfo } from 'node:os'
import type { Command } from 'commander'
import type { Appliance } from '../../appliance/appliance.js'
import { siteLocator } from '../../appliance/open-delivery.js'
import { isUuid } from '../../core/ids.js'
import { isAppliance } from '../../core/owner.js'
import type { Tx } from '../../db/database.js'
import { isServing } from '../../db/sqlite/serve-lock.js'
import { SHELL } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import {
  CHANGE_BATCH,
  listDestinations,
  listEntries,
  type QueueSelection,
  selectedIds,
} from '../../queue/operator/queue-admin-store.js'
import { destinationsOf } from '../../queue/operator/queue-status.js'
import { type CliContext, type CommonOptions, getWorkspace, UsageError } from '../context.js'

export interface SelectOptions extends CommonOptions {
  readonly domain?: string
  readonly site?: string
  readonly workspace?: string
  readonly all?: boolean
}

type Named = QueueSelection | { readonly site: string }

export function selectOptions(command: Command): Command {
  return command
    .option('--domain <domain>', 'mail to this domain')
    .option('--site <name>', 'mail to this site, as named by `queue summary --by site`')
    .option('--workspace <name|id>', 'mail of this workspace')
}

/** @param fallback selection if none is given; undefined: one is required */
export function readSelection(id: string | undefined, options: SelectOptions, fallback?: Named): Named {
  const { domain, site, workspace, all } = options
  const named: Named[] = []
  if (id !== undefined) named.push({ messageId: id })
  if (domain !== undefined) named.push({ destination: domain.toLowerCase() })
  if (site !== undefined) named.push({ site })
  if (workspace !== undefined) named.push({ workspaceId: workspace })
  if (all) named.push({ isAll: true })
  if (named.length === 0 && fallback) named.push(fallback)
  const [selection] = named
  if (!selection || named.length > 1)
    throw new UsageError('pass exactly one of: a message id, --domain, --site, --workspace, --all')
  return selection
}

/** Resolves a site to its queued destinations, and a workspace's name to its id. */
export async function resolveSelection(appliance: Appliance, named: Named): Promise<QueueSelection> {
  if ('workspaceId' in named && !isUuid(named.workspaceId))
    return { workspaceId: (await getWorkspace(appliance.database.reader, named.workspaceId)).id }
  if (!('site' in named)) return named
  const queued = await listDestinations(appliance.database.reader)
  return { destinations: await destinationsOf(named.site, queued, siteLocator(appliance)) }
}

/** @param isServing whether a server runs on the same data folder */
export type Change = (tx: Tx, selection: QueueSelection, now: number, isServing: boolean) => Promise<number>

/** Sleeps after each batch as long as it took, so that the server, which polls for the write lock, can get it. */
export async function changeInBatches(
  { config, database, world: { clock } }: Appliance,
  selection: QueueSelection,
  change: Change,
): Promise<number> {
  let changed = 0
  for await (const messageIds of selectedIds(database.reader, selection)) {
    const startedAt = clock.monotonic()
    const isBeside = isServing(config.dataDir)
    changed += await database.write(tx => change(tx, { messageIds }, clock.now(), isBeside))
    await clock.sleep(clock.monotonic() - startedAt)
  }
  return changed
}

/** Action by command name. */
const ACTIONS = { hold: 'queue.held', release: 'queue.released', delete: 'queue.deleted' } as const

interface RecordedChange {
  readonly change: Change
  /** Call when the command ends, even if it failed. */
  write(): Promise<void>
}

/** @param what the selection, e.g. `all mail for one.test` */
export function recorded(
  context: CliContext,
  { database, world: { clock } }: Appliance,
  name: string,
  what: string,
  change: Change,
): RecordedChange {
  if (!isRecorded(name)) return { change, write: () => Promise.resolve() }
  const counts = new Map<string, number>()
  return {
    async change(tx, selection, now, isServing) {
      const entries = await listEntries(tx.db, selection, CHANGE_BATCH)
      const changed = await change(tx, selection, now, isServing)
      for (const { workspaceId } of changed === 0 ? [] : entries)
        if (!isAppliance(workspaceId)) counts.set(workspaceId, (counts.get(workspaceId) ?? 0) + 1)
      return changed
    },
    async write() {
      if (counts.size === 0) return
      const user = context.env['SUDO_USER'] ?? userInfo().username
      await database.write(async tx => {
        for (const [workspaceId, messages] of counts)
          await recordActivity(tx, {
            workspaceId,
            actor: SHELL,
            action: ACTIONS[name],
            subject: what,
            details: { messages, user },
            createdAt: clock.now(),
          })
      })
    },
  }
}

function isRecorded(name: string): name is keyof typeof ACTIONS {
  return Object.hasOwn(ACTIONS, name)
}
