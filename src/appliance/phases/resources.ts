/**
 * The resources, and what is made of them: their event consumers with the dispatcher, and their jobs.
 *
 * Routes of resources show the dispatcher and the jobs, so the two refer to each other; requests are answered only once all are open.
 */
import type { Settings } from '../../config/settings.js'
import { LEASES } from '../../cluster/leases.js'
import { Dispatcher } from '../../events/dispatcher.js'
import { retentionJobs } from '../../resource/retention.js'
import { JobGroups } from '../../scheduler/job-groups.js'
import { JobRequests } from '../../scheduler/job-requests.js'
import { consumersOf, jobsByKind } from '../background-parts.js'
import type { Certificates } from '../open-certificates.js'
import { judgeOf } from '../open-metrics.js'
import { loginGuardOf, resourceParts } from '../resource-parts.js'
import { openResources } from '../resources.js'
import type { DeliveryPhase } from './delivery.js'
import type { IntakePhase } from './intake.js'
import type { MembershipPhase } from './membership.js'
import type { StoragePhase } from './storage.js'
import type { ThreadsPhase } from './threads.js'

export type ResourcesPhase = ReturnType<typeof openServerResources>

interface Given extends StoragePhase, MembershipPhase, ThreadsPhase, IntakePhase, DeliveryPhase {
  readonly certificates: Certificates
  readonly settings: Settings | undefined
}

export function openServerResources(given: Given, closing: AsyncDisposableStack) {
  const { appliance, meters, hold, signals, membership, leases, inbound, queue, sites, certificates } = given
  const { config, world, database } = appliance
  const consumerLags = () => dispatcher.lags()
  const judgeHealth = judgeOf(appliance, meters, hold, {
    queue,
    certificates,
    node: () => membership.standing,
    consumerLags,
  })
  const guard = loginGuardOf(appliance, membership.nodeId)
  const resources = openResources(
    resourceParts(appliance, {
      openWindow: given.openWindow,
      renderQueue: given.renderQueue,
      send: given.send,
      inboundQuota: inbound.quota,
      eventLog: { passed: () => dispatcher.passed(), retrySetAside: () => dispatcher.retrySetAside() },
      onEvents: signals.appended.emit,
      onHolds: signals.holdsChanged.emit,
      outgoingCalls: given.calls.of,
      metrics: meters.metrics,
      judgeHealth,
      node: () => membership.standing,
      guard,
      runningQueue: () => queue,
      locateSite: sites.locate,
      live: meters.liveSources,
      liveChanges: given.liveChanges,
      replies: given.replies,
      jobs: { list: () => jobs.list(), run: name => requests.run(name) },
      composer: given.composer,
      agent: given.agent,
      settings: given.settings,
      certificates,
    }),
    config,
  )
  const dispatcher: Dispatcher = new Dispatcher({ database, ...world }, consumersOf(resources))
  signals.appended.on(() => {
    dispatcher.wake()
    if (!LEASES.every(name => leases[name].isHeld())) database.announce?.('events')
  })
  // Inbound mail that is being processed is finished before the consumers of its events stop.
  closing.defer(() => dispatcher.stop())
  closing.defer(() => inbound.processor.stop())
  closing.defer(() => inbound.stopFollowing())
  const retentions = resources.flatMap(({ retention = [] }) => retention)
  const jobs = new JobGroups(
    {
      ...world,
      database,
      isHeld: () => hold.isHeld,
      isMine: kind => leases[kind].isHeld(),
      main: 'jobs',
    },
    jobsByKind(resources, [
      ...retentionJobs({ ...world, database }, retentions, config.retention),
      ...certificates.jobs,
    ]),
  )
  const requests = new JobRequests({ ...appliance, ...world, jobs })
  return { resources, dispatcher, jobs, requests, judgeHealth, consumerLags, guard }
}
