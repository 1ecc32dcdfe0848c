/**
 * Records an operator's queue changes in the activity log of each workspace concerned: who, what and how many messages.
 *
 * Used by the commands that hold, release and delete; one entry per workspace and command. Mail of the appliance itself has no log. The
 * entry is written after the change, so it is lost if the database fails in between.
 */
import { userInfo } from 'node:os'
import { isAppliance } from '../../core/owner.js'
import type { Appliance } from '../../appliance/appliance.js'
import { OPERATOR, recordActivity } from '../../events/activity-store.js'
import { CHANGE_BATCH, listEntries } from '../../queue/operator/queue-admin-store.js'
import type { CliContext } from '../context.js'
import type { Change } from './change-queue.js'

/** Action by command name. */
const ACTIONS = { hold: 'queue.held', release: 'queue.released', delete: 'queue.deleted' } as const

export interface NotedChange {
  readonly change: Change
  /** Call when the command ends, even if it failed. */
  write(): Promise<void>
}

/** @param what the selection, e.g. `all mail for one.test` */
export function noted(
  context: CliContext,
  { database, world: { clock } }: Appliance,
  name: string,
  what: string,
  change: Change,
): NotedChange {
  if (!isNoted(name)) return { change, write: () => Promise.resolve() }
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
            actor: OPERATOR,
            action: ACTIONS[name],
            subject: what,
            details: { messages, user },
            createdAt: clock.now(),
          })
      })
    },
  }
}

function isNoted(name: string): name is keyof typeof ACTIONS {
  return Object.hasOwn(ACTIONS, name)
}
