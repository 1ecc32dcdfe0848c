/** The queue. It is opened before the resources, which show it, and starts once they can receive what it reports. */
import { leftBehindBefore } from '../../cluster/left-behind.js'
import { LiveChanges } from '../../metrics/live-changes.js'
import type { SandboxRunner } from '../../msa/sandbox/sandbox-runner.js'
import { clearLeftBehind } from '../../msa/store-long-content.js'
import { recoverOrphans } from '../../queue/claiming/crash-recovery.js'
import { RecentReplies } from '../../queue/operator/recent-replies.js'
import { openQueue, replaceableLocator } from '../open-delivery.js'
import { stopQueue } from '../shutdown.js'
import type { MembershipPhase } from './membership.js'
import type { StoragePhase } from './storage.js'
import type { ThreadsPhase } from './threads.js'

export type DeliveryPhase = ReturnType<typeof openDelivery>

export function openDelivery({
  appliance,
  meters,
  hold,
  signals,
  membership,
  agent,
  jobLoader,
}: StoragePhase & MembershipPhase & ThreadsPhase) {
  const liveChanges = new LiveChanges(appliance.database)
  const replies = new RecentReplies(appliance.world.clock)
  const sites = replaceableLocator(appliance)
  const queue = openQueue({
    appliance,
    agent,
    jobs: jobLoader,
    hold,
    membership,
    locateSite: sites.locate,
    onSettled: signals.appended.emit,
    onAttempt: attempt => {
      meters.onAttempt(attempt)
      replies.note(attempt)
      liveChanges.attempted(attempt.job.workspaceId)
    },
  })
  signals.enqueued.on((lane, dueAt) => queue.noteEnqueued(lane, dueAt))
  signals.holdsChanged.on(() => queue.reloadHolds())
  return { queue, sites, replies, liveChanges }
}

/** Joins the other nodes, which makes this node's share of the mail known, and delivers it. */
export async function startDelivery(
  {
    appliance,
    graceLeft,
    membership,
    limits,
    sandboxes,
    queue,
  }: StoragePhase & MembershipPhase & DeliveryPhase & { readonly sandboxes: SandboxRunner },
  closing: AsyncDisposableStack,
): Promise<void> {
  const { config, world, database } = appliance
  membership.whenNodeDies(tx => recoverOrphans(tx, { ...world, retry: config.mta.retry }))
  await membership.join()
  limits?.start()
  await clearLeftBehind(database, leftBehindBefore(database, world.clock))
  await queue.start()
  membership.whenChanged(() => queue.reloadShares())
  closing.defer(() => sandboxes.stop())
  closing.defer(() => stopQueue(queue, graceLeft(), world))
}
