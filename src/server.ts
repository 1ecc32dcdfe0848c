/**
 * The composition root: opens every part, passes each its dependencies, and closes them in the right order.
 *
 * Closing order: stop starting work (jobs, long operations of resources) and accepting (SMTP, HTTP); finish or abandon deliveries (queue);
 * process inbound mail and drain consumers; close the database.
 */
import { isDeepStrictEqual } from 'node:util'
import { keptAnswers } from './accounts/idempotency-store.js'
import { RestoreHold } from './accounts/restore-hold-store.js'
import { keyAuthenticator } from './accounts/keys.js'
import { openOperatorAccess } from './accounts/operators/access.js'
import { makeDataFolder, openAppliance, requireInitialised, type Appliance } from './appliance/appliance.js'
import { baseUrl, type Config } from './config/config.js'
import type { Settings } from './config/settings.js'
import { controlSocketPath, openControl } from './appliance/listeners/control.js'
import { describeError } from './core/errors.js'
import { VERSION } from './core/version.js'
import { backgroundParts, consumersOf, jobsByKind } from './appliance/background-parts.js'
import { BackgroundWork, openLeases } from './appliance/background-work.js'
import { DRAIN_MS, graceFrom, retire, stopQueue, stopResources } from './appliance/shutdown.js'
import { leftBehindBefore } from './cluster/left-behind.js'
import { LEASES } from './cluster/leases.js'
import { Membership } from './cluster/membership.js'
import { rolesOf } from './cluster/roles.js'
import { takeServeLock } from './db/sqlite/serve-lock.js'
import { Dispatcher } from './events/dispatcher.js'
import { buildApp, type OnWrite } from './http/app.js'
import { withConsole } from './console/console-app.js'
import type { OpenWindow } from './http/sliding-window.js'
import { documentationRoutes } from './http/openapi/routes.js'
import { buildPublicApp, type PublicApp } from './http/public/public-app.js'
import type { PublicRoute } from './http/public/public-route.js'
import { servedTogether } from './http/public/served-together.js'
import type { Route } from './http/route.js'
import { openHttpListeners, type HttpAddresses } from './appliance/listeners/http-listeners.js'
import { openInbound } from './inbound/open-inbound.js'
import { openLinkKeys } from './mail/links/link-keys.js'
import { LiveChanges } from './metrics/live-changes.js'
import type { LiveSources } from './metrics/live.js'
import { openMailListeners, type MailAddresses } from './appliance/listeners/mail-listeners.js'
import { openNameListeners } from './appliance/listeners/name-listeners.js'
import type { MessageContent } from './messages/content-store.js'
import { SandboxRunner } from './msa/sandbox/sandbox-runner.js'
import { clearLeftBehind } from './msa/store-long-content.js'
import { SubmissionGatherer } from './msa/submission-gatherer.js'
import { SenderCache } from './msa/sender.js'
import { openCertificates } from './appliance/open-certificates.js'
import { RenderQueue } from './content/rendering/render-queue.js'
import { replaceablePool } from './mta/workers/worker-pool.js'
import { openAgent, openComposer, openJobs, openQueue, siteLocator } from './appliance/open-delivery.js'
import { observeAll, judgeOf, liveSources, openMeters, type Meters } from './appliance/open-metrics.js'
import { loginGuardOf, resourceParts, submitParts } from './appliance/resource-parts.js'
import { openSharedLimits } from './appliance/open-limits.js'
import { openOutgoingCalls } from './appliance/outgoing-calls.js'
import type { OnAttempt } from './queue/delivery/record-outcomes.js'
import { RecentReplies } from './queue/operator/recent-replies.js'
import { recoverOrphans } from './queue/claiming/crash-recovery.js'
import type { QueueManager } from './queue/queue-manager.js'
import type { NewQueueEntry } from './queue/queue-store.js'
import type { Tx } from './db/database.js'
import { retentionJobs } from './resource/retention.js'
import { CHAPTERS, openResources, OUTGOING } from './appliance/resources.js'
import { JobGroups } from './scheduler/job-groups.js'
import { JobRequests } from './scheduler/job-requests.js'
import { inboundParts } from './appliance/inbound-parts.js'
import { openVisits, visitPages } from './tracking/visits/visit-handler.js'
import { systemClock } from './world/time/clock.js'
import type { HttpHandler } from './world/net/http-connections.js'
import type { ListenAddress } from './world/net/listen.js'
import { applyReload } from './appliance/apply-reload.js'
import type { World } from './world/world.js'

export interface Server extends AsyncDisposable {
  /** Resolves if other nodes removed this one. It can store nothing any more, so the process has to end. */
  readonly removed: Promise<void>
  /** Addresses each listener actually bound. */
  readonly addresses: ServerAddresses
  /**
   * Applies the reloadable keys (`config/reload.ts`) and reloads the certificate.
   *
   * @throws Error naming the unusable certificate file; nothing changes then
   */
  reload(next: Config): Promise<void>
}

export interface ServerAddresses extends MailAddresses, HttpAddresses {
  readonly dns: readonly ListenAddress[]
}

/**
 * Resolves once all listeners are open; disposing drains within `shutdown_grace`.
 *
 * @param settings shown by `GET /configuration`
 * @throws LockedError, NotInitialisedError, SchemaError, Error naming an address that cannot be bound
 */
export async function openServer(config: Config, world: World, settings?: Settings): Promise<Server> {
  const closing = new AsyncDisposableStack()
  try {
    return {
      ...(await openParts(config, world, closing, settings)),
      [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
    }
  } catch (error) {
    await closing[Symbol.asyncDispose]()
    throw error
  }
}

async function openParts(
  config: Config,
  plainWorld: World,
  closing: AsyncDisposableStack,
  settings: Settings | undefined,
): Promise<Omit<Server, typeof Symbol.asyncDispose>> {
  requireInitialised(config)
  makeDataFolder(config)
  closing.use(takeServeLock(config.dataDir))
  const meters = openMeters(plainWorld)
  const { world, onCommitted } = meters
  const appliance = closing.use(
    await openAppliance({ config, world, mayMigrate: true, isServing: true, onCommitted }),
  )
  const hold = new RestoreHold(appliance.database.reader)
  await hold.look()
  if (hold.isHeld) world.log.warn('queue held after restore')
  const membership = new Membership({
    ...world,
    ...appliance,
    // In real time, since other nodes judge this one by the database's clock.
    clock: systemClock,
    nodeId: appliance.newId(),
    hostname: config.hostname,
    roles: rolesOf(config.roles),
  })
  // Last, since what is stopped before still writes.
  closing.defer(() => membership.leave())
  const leases = openLeases(membership)
  const limits = openSharedLimits(appliance, membership)
  closing.defer(() => limits?.stop())
  const openWindow: OpenWindow | undefined = limits && ((kind, windowMs) => limits.window(kind, windowMs))
  // The queue and the consumers notify each other, so each is opened with a callback to the other.
  const onEnqueued = (lane: string, dueAt: number) => queue.noteEnqueued(lane, dueAt)
  const onAppended = () => {
    dispatcher.wake()
    if (!LEASES.every(name => leases[name].isHeld())) appliance.database.announce?.('events')
  }
  const inbound = await openInbound({
    ...inboundParts(appliance),
    openWindow,
    onEnqueued,
    onAppended,
    isProcessing: () => leases.inbound.isHeld(),
    onStoredForOthers: () => appliance.database.announce?.('events'),
  })
  const jobs = openJobs(appliance)
  const sandboxes = new SandboxRunner({ ...world, database: appliance.database, onEvents: onAppended })
  const submit = {
    ...submitParts(appliance, openWindow),
    onEnqueued,
    claimAccepted: (tx: Tx, entries: readonly NewQueueEntry[]) => queue.claimAccepted(tx, entries),
    onStored: (content: MessageContent) => jobs.cache(content),
    onMessages: (messages: number) => meters.live.count('accepted', messages),
    onEvents: onAppended,
    onSandboxScheduled: (dueAt: number) => sandboxes.noteScheduled(dueAt),
  }
  const agent = replaceablePool(openAgent(appliance))
  closing.defer(() => agent.terminate())
  const renderQueue = new RenderQueue({ clock: world.clock, render: request => agent.render(request) })
  const send = {
    ...submit,
    renderQueue,
    gatherer: new SubmissionGatherer(submit),
    senders: new SenderCache(appliance.database, appliance.world.clock, config.mta.sharedAddress ?? ''),
    messageLimit: config.limits.messageSizeBytes,
  }
  const calls = openOutgoingCalls(appliance)
  closing.defer(() => calls.close())
  const composer = openComposer(appliance)
  closing.defer(() => composer.close())
  const certificates = await openCertificates(appliance, () => membership.members)
  const judgeHealth = judgeOf(appliance, meters, hold, {
    queue: () => queue,
    certificates,
    node: () => membership.standing,
    consumerLags: () => consumerLags(),
  })
  const guard = loginGuardOf(appliance, membership.nodeId)
  const late: { live?: LiveSources } = {}
  const liveChanges = new LiveChanges(appliance.database)
  const replies = new RecentReplies(world.clock)
  const resources = openResources(
    resourceParts(appliance, {
      openWindow,
      renderQueue,
      send,
      inboundQuota: inbound.quota,
      eventLog: { passed: () => dispatcher.passed(), retrySetAside: () => dispatcher.retrySetAside() },
      onEvents: onAppended,
      onHolds: () => queue.reloadHolds(),
      outgoingCalls: calls.of,
      metrics: meters.metrics,
      judgeHealth,
      node: () => membership.standing,
      guard,
      runningQueue: () => queue,
      locateSite: name => locateSite(name),
      live: () => late.live,
      liveChanges,
      replies,
      jobs: {
        list: () => jobGroups.list(),
        run: name => requests.run(name),
      },
      composer,
      agent,
      settings,
      certificates,
    }),
    config,
  )
  const dispatcher: Dispatcher = new Dispatcher(
    { database: appliance.database, ...world },
    consumersOf(resources),
  )
  closing.defer(() => dispatcher.stop())
  closing.defer(() => inbound.processor.stop())
  closing.defer(() => inbound.stopCounting())
  const consumerLags = () => dispatcher.lags()
  let locateSite = siteLocator(appliance)
  const onAttempt: OnAttempt = attempt => {
    meters.onAttempt(attempt)
    replies.note(attempt)
    liveChanges.attempted(attempt.job.workspaceId)
  }
  const queue: QueueManager = openQueue(
    appliance,
    agent,
    jobs,
    hold,
    onAppended,
    onAttempt,
    name => locateSite(name),
    membership,
  )
  membership.whenNodeDies(tx => recoverOrphans(tx, { ...world, retry: config.mta.retry }))
  await membership.join()
  limits?.start()
  await clearLeftBehind(appliance.database, leftBehindBefore(appliance.database, world.clock))
  await queue.start()
  membership.whenChanged(() => queue.reloadShares())
  closing.defer(() => sandboxes.stop())
  const graceLeft = graceFrom(world.clock, config.shutdownGraceMs)
  closing.defer(() => stopQueue(queue, graceLeft(), world))
  const retentions = resources.flatMap(({ retention = [] }) => retention)
  const jobGroups = new JobGroups(
    {
      ...world,
      database: appliance.database,
      isHeld: () => hold.isHeld,
      isMine: kind => leases[kind].isHeld(),
      main: 'jobs',
    },
    jobsByKind(resources, [
      ...retentionJobs({ ...world, database: appliance.database }, retentions, config.retention),
      ...certificates.jobs,
    ]),
  )
  const requests = new JobRequests({ ...appliance, ...world, jobs: jobGroups })
  const routes = resources.flatMap(one => one.routes ?? [])
  const onWrite: OnWrite = (path, workspaceId) => liveChanges.wrote(path, workspaceId)
  const api = openApi(appliance, routes, meters, onWrite, openWindow)
  const visits = await openVisits({ ...visitParts(appliance), onEvents: onAppended })
  closing.defer(() => visits.close())
  const publicRoutes = [...resources.flatMap(({ pages = [] }) => pages), ...visitPages]
  const pages = visits.before(openPages(appliance, openWindow, publicRoutes))
  const shownInConsole = publicRoutes.filter(({ isBesideApi }) => isBesideApi)
  const besideApi = servedTogether(api, openPages(appliance, openWindow, shownInConsole))
  const control = await openControl(appliance, controlSocketPath(config.dataDir), [...routes], onWrite)
  closing.defer(() => control.close(graceLeft()))
  const http = await openHttpListeners(appliance.live, besideApi, pages, certificates, world)
  closing.defer(() => http.close(graceLeft()))
  const { onAccepted } = meters.acceptance
  const mail = await openMailListeners(
    appliance,
    certificates.certificate,
    { ...submit, renderQueue },
    inbound,
    guard,
    onAccepted,
  )
  closing.defer(() => mail.close(graceLeft()))
  const names = await openNameListeners(appliance, certificates.challenges?.zone)
  closing.defer(() => names.close())
  const parts = backgroundParts({
    resources,
    dispatcher,
    jobs: jobGroups,
    workers: {
      inbound: {
        start: () => inbound.processor.start(),
        stop: () => inbound.processor.stop(),
        wake: () => inbound.processor.wakeAll(),
      },
      statistics: visits,
      jobs: {
        start: () => sandboxes.start(),
        stop: () => sandboxes.stop(),
        wake: () => sandboxes.noteScheduled(world.clock.now()),
      },
    },
    graceMs: () => (membership.standing.state === 'stopping' ? graceLeft() : DRAIN_MS),
    answerRequests() {
      requests
        .answer()
        .catch((error: unknown) => world.log.warn('job requests not read', { error: describeError(error) }))
    },
  })
  const background = new BackgroundWork(appliance, leases, parts)
  await background.follow()
  membership.whenChanged(() => void background.follow())
  if (appliance.database.shared) closing.defer(certificates.follow(() => leases.jobs.isHeld()))
  closing.defer(() => background.close())
  closing.defer(() => stopResources(resources))
  closing.defer(() => jobGroups.stopAll(graceLeft()))
  const observed = {
    appliance,
    judgeHealth,
    queue,
    consumerLags,
    jobs: () => jobGroups.listMine(),
    node: () => membership.standing,
    certificates,
    mail,
    http,
  }
  closing.defer(observeAll(meters, observed))
  late.live = liveSources(meters, observed)
  // First, so that the other nodes take over while this one finishes.
  closing.defer(() => retire(membership, background, graceLeft, world.clock))
  membership.noteStarted()
  const reload = async (next: Config): Promise<void> => {
    await certificates.reload()
    const former = appliance.live.current
    const now = (appliance.live.current = applyReload(config, next))
    mail.reconfigure(now)
    calls.reload(now)
    if (isDeepStrictEqual(former.mta, now.mta)) return
    agent.replace(openAgent(appliance, now))
    locateSite = siteLocator({ config: now, world })
    queue.invalidateSites()
  }
  const addresses = { ...http.addresses, ...mail.addresses, dns: names.addresses }
  return { addresses, removed: membership.removed, reload }
}

function openApi(
  { config, live, world, database, newId, box }: Appliance,
  routes: readonly Route[],
  { acceptance }: Meters,
  onWrite: OnWrite,
  openWindow: OpenWindow | undefined,
): HttpHandler {
  const api = buildApp(
    {
      ...world,
      newId,
      authenticate: keyAuthenticator(database, world.clock),
      operators: openOperatorAccess({ ...world, database }),
      publicUrl: config.publicUrl,
      trustedProxies: config.http.trustedProxies,
      get anonymousRateLimit() {
        return live.current.http.anonymousRateLimit
      },
      keptAnswers: keptAnswers(database, box),
      onAnswer: acceptance.onAnswer,
      onWrite,
      openWindow,
    },
    [
      ...routes,
      ...documentationRoutes(routes, {
        version: VERSION,
        origin: baseUrl(config),
        chapters: CHAPTERS,
        outgoing: OUTGOING,
      }),
    ],
  )
  return withConsole(api)
}

function openPages(
  { config, world, newId }: Appliance,
  openWindow: OpenWindow | undefined,
  pages: readonly PublicRoute[],
): PublicApp {
  const { publicRateLimit: rateLimit, trustedProxies } = config.http
  return buildPublicApp({ ...world, newId, rateLimit, trustedProxies, openWindow }, pages)
}

function visitParts({ config, world, database, linkSecrets }: Appliance) {
  const { trustedProxies } = config.http
  return { ...world, database, keys: openLinkKeys(linkSecrets), trustedProxies }
}
