/**
 * Operators' changes of the queue: holds, releases, retries and deletes a part of it, in batches.
 *
 * A site's destinations are found as the queue finds them, by resolving every queued destination. Each change is recorded in the activity
 * log of the workspaces concerned, after the change; if the database fails in between, earlier batches remain changed.
 */
import type { Actor } from '../../core/actor.js'
import { isAppliance } from '../../core/owner.js'
import type { Database, Tx } from '../../db/database.js'
import { recordActivity } from '../../events/activity-store.js'
import type { Clock } from '../../world/time/clock.js'
import type { LocateSite } from '../delivery-agent.js'
import {
  deleteEntries,
  listDestinations,
  retryNow,
  selectBatch,
  setHeld,
  type KindOfChange,
  type QueueChange,
  type QueuePosition,
  type QueuePower,
  type QueueSelection,
} from './queue-admin-store.js'
import { destinationsOf } from './queue-status.js'

/** The part of the queue that a request names; all of it if nothing is given. */
export interface NamedPart {
  readonly messageIds?: readonly string[] | undefined
  readonly domain?: string | undefined
  readonly site?: string | undefined
  readonly workspaceId?: string | undefined
}

export interface ChangeParts {
  readonly database: Database
  readonly clock: Pick<Clock, 'now' | 'monotonic' | 'sleep'>
  /** Whether a server may be delivering. */
  readonly isServing: boolean
}

export interface ChangeRequest {
  readonly kind: QueueChange
  readonly selection: QueueSelection
  /** In whose name; default: the appliance's. */
  readonly by?: QueuePower
  /** Where an earlier call stopped. */
  readonly after?: QueuePosition | undefined
  /** Stops after the batch that exceeds it; default: changes everything. */
  readonly limitMs?: number
}

export interface Changed {
  readonly changed: number
  readonly byWorkspace: ReadonlyMap<string, number>
  /** Where the next call continues; undefined if everything is changed. */
  readonly end: QueuePosition | undefined
}

/** Resolves a site to its queued destinations. */
export async function selectionOf(
  { database, locateSite }: { readonly database: Database; readonly locateSite: LocateSite },
  { messageIds, domain, site, workspaceId }: NamedPart,
): Promise<QueueSelection> {
  const destinations = site === undefined ? domain && [domain.toLowerCase()] : await ofSite(site)
  return {
    ...(messageIds ? { messageIds } : {}),
    ...(destinations ? { destinations } : {}),
    ...(workspaceId === undefined ? {} : { workspaceId }),
  }
  async function ofSite(name: string): Promise<string[]> {
    return destinationsOf(name, await listDestinations(database.slowReader), locateSite)
  }
}

/** Sleeps after each batch as long as it took, so that other work gets its share. */
export async function changeQueue(
  { database, clock, isServing }: ChangeParts,
  { kind, selection, by = 'appliance', after, limitMs = Infinity }: ChangeRequest,
): Promise<Changed> {
  const byWorkspace = new Map<string, number>()
  const startedAt = clock.monotonic()
  let changed = 0
  let end = after
  for (;;) {
    const batchAt = clock.monotonic()
    const now = clock.now()
    const batch = await selectBatch(database.slowReader, selection, { kind, now, by }, end)
    const messageIds = batch.entries.map(({ messageId }) => messageId)
    if (messageIds.length > 0)
      changed += await database.write(
        async tx => {
          tx.changed('queue')
          return changeEntries(tx, { kind, now, by }, messageIds, isServing)
        },
        { isLong: true },
      )
    for (const { workspaceId } of batch.entries)
      byWorkspace.set(workspaceId, (byWorkspace.get(workspaceId) ?? 0) + 1)
    end = batch.end
    if (!end || clock.monotonic() - startedAt > limitMs) return { changed, byWorkspace, end }
    await clock.sleep(clock.monotonic() - batchAt)
  }
}

/** @returns messages held */
export async function holdWorkspaceMail(
  parts: Pick<ChangeParts, 'database' | 'clock'>,
  workspaceId: string,
  by: QueuePower,
): Promise<number> {
  const request = { kind: 'hold', selection: { workspaceId }, by } as const
  return (await changeQueue({ ...parts, isServing: true }, request)).changed
}

function changeEntries(
  tx: Tx,
  { kind, now, by }: KindOfChange,
  messageIds: readonly string[],
  isServing: boolean,
): Promise<number> {
  if (kind === 'delete') return deleteEntries(tx, { messageIds }, now, isServing)
  if (kind === 'retry') return retryNow(tx.db, { messageIds }, now)
  return setHeld(tx.db, { messageIds }, kind === 'hold', by)
}

const ACTIONS = {
  hold: 'queue.held',
  release: 'queue.released',
  retry: 'queue.retried',
  delete: 'queue.deleted',
} as const satisfies Record<QueueChange, string>

/** Records a change in the activity log of each workspace concerned. @param subject e.g. `all queued mail for one.test` */
export async function recordChange(
  { database, clock }: Pick<ChangeParts, 'database' | 'clock'>,
  kind: QueueChange,
  subject: string,
  actor: Actor,
  { byWorkspace }: Pick<Changed, 'byWorkspace'>,
): Promise<void> {
  const concerned = [...byWorkspace].filter(([workspaceId]) => !isAppliance(workspaceId))
  if (concerned.length === 0) return
  await database.write(async tx => {
    for (const [workspaceId, messages] of concerned)
      await recordActivity(tx, { workspaceId, actor }, clock.now(), {
        action: ACTIONS[kind],
        subject,
        details: { messages },
      })
  })
}

/** As the activity log and the command line name it. */
export function partInWords({ messageIds, domain, site, workspaceId }: NamedPart): string {
  const within = workspaceId === undefined ? '' : ` of workspace ${workspaceId}`
  if (messageIds)
    return messageIds.length === 1 ? `message ${messageIds[0] ?? ''}` : `${messageIds.length} messages`
  if (domain !== undefined) return `all queued mail for ${domain.toLowerCase()}${within}`
  if (site !== undefined) return `all queued mail for site ${site}${within}`
  return `all queued mail${within}`
}
