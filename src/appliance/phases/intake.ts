/** The inbound receiver, message intake (`submit`) and the sandbox. Nothing listens yet. */
import type { Tx } from '../../db/database.js'
import { openInbound } from '../../inbound/open-inbound.js'
import type { MessageContent } from '../../messages/content-store.js'
import { SandboxRunner } from '../../msa/sandbox/sandbox-runner.js'
import { SenderCache } from '../../msa/sender.js'
import { SubmissionGatherer } from '../../msa/submission-gatherer.js'
import type { NewQueueEntry } from '../../queue/queue-store.js'
import { inboundParts } from '../inbound-parts.js'
import { submitParts } from '../resource-parts.js'
import type { DeliveryPhase } from './delivery.js'
import type { MembershipPhase } from './membership.js'
import type { StoragePhase } from './storage.js'
import type { ThreadsPhase } from './threads.js'

export type IntakePhase = Awaited<ReturnType<typeof openIntake>>

export async function openIntake({
  appliance,
  meters,
  signals,
  leases,
  openWindow,
  jobLoader,
  renderQueue,
  queue,
}: StoragePhase & MembershipPhase & ThreadsPhase & DeliveryPhase) {
  const { config, world, database } = appliance
  const inbound = await openInbound({
    ...inboundParts(appliance),
    openWindow,
    onEnqueued: signals.enqueued.emit,
    onAppended: signals.appended.emit,
    isProcessing: () => leases.inbound.isHeld(),
  })
  const sandboxes = new SandboxRunner({ ...world, database, onEvents: signals.appended.emit })
  const submit = {
    ...submitParts(appliance, openWindow),
    onEnqueued: signals.enqueued.emit,
    claimAccepted: (tx: Tx, entries: readonly NewQueueEntry[]) => queue.claimAccepted(tx, entries),
    onStored: (content: MessageContent) => jobLoader.cache(content),
    onMessages: (messages: number) => meters.live.count('accepted', messages),
    onEvents: signals.appended.emit,
    onSandboxScheduled: (dueAt: number) => sandboxes.noteScheduled(dueAt),
  }
  const send = {
    ...submit,
    renderQueue,
    gatherer: new SubmissionGatherer(submit),
    senders: new SenderCache(database, world.clock, config.mta.sharedAddress ?? ''),
    messageLimit: config.limits.messageSizeBytes,
  }
  return { inbound, sandboxes, submit, send }
}
