/** Background work of the kinds whose lease this node holds, and metrics of all parts. Last to start, since jobs use the listeners (ACME). */
import { describeError } from '../../core/errors.js'
import { backgroundParts } from '../background-parts.js'
import { BackgroundWork } from '../background-work.js'
import type { Certificates } from '../open-certificates.js'
import { observeAll } from '../open-metrics.js'
import { DRAIN_MS, retire, stopResources } from '../shutdown.js'
import type { DeliveryPhase } from './delivery.js'
import type { IntakePhase } from './intake.js'
import type { ListenersPhase } from './listeners.js'
import type { MembershipPhase } from './membership.js'
import type { ResourcesPhase } from './resources.js'
import type { StoragePhase } from './storage.js'

interface Given
  extends StoragePhase, MembershipPhase, IntakePhase, DeliveryPhase, ResourcesPhase, ListenersPhase {
  readonly certificates: Certificates
}

export async function startBackground(given: Given, closing: AsyncDisposableStack): Promise<void> {
  const { appliance, meters, graceLeft, membership, leases, sandboxes, inbound, certificates } = given
  const { resources, jobs, requests } = given
  const { world, database } = appliance
  const parts = backgroundParts({
    resources,
    dispatcher: given.dispatcher,
    jobs,
    workers: {
      inbound: {
        start: () => inbound.processor.start(),
        stop: () => inbound.processor.stop(),
      },
      statistics: given.visits,
      jobs: {
        start: () => sandboxes.start(),
        stop: () => sandboxes.stop(),
      },
    },
    graceMs: () => (membership.standing.state === 'stopping' ? graceLeft() : DRAIN_MS),
    wake: {
      sandboxes: () => sandboxes.noteScheduled(world.clock.now()),
      job_requests() {
        requests
          .answer()
          .catch((error: unknown) => world.log.warn('job requests not read', { error: describeError(error) }))
      },
    },
  })
  const background = new BackgroundWork(appliance, leases, parts)
  await background.follow()
  membership.whenChanged(() => void background.follow())
  if (database.shared) closing.defer(certificates.follow(() => leases.jobs.isHeld()))
  closing.defer(() => background.close())
  closing.defer(() => stopResources(resources))
  closing.defer(() => jobs.stopAll(graceLeft()))
  closing.defer(
    observeAll(meters, {
      appliance,
      judgeHealth: given.judgeHealth,
      queue: given.queue,
      consumerLags: given.consumerLags,
      jobs: () => jobs.listMine(),
      node: () => membership.standing,
      certificates,
      mail: given.mail,
      http: given.http,
    }),
  )
  // First of all to close, so that the other nodes take over while this one finishes.
  closing.defer(() => retire(membership, background, graceLeft, world.clock))
  membership.noteStarted()
}
