/**
 * The composition root: opens every part, hands each what it needs, and closes them in the right order.
 *
 * Order of closing: first nothing new begins (jobs, long works of resources) or comes in (SMTP, HTTP), then what is under way is
 * delivered or broken off (queue), then what came back is read and consumers finish, then the database.
 */
import { answerFinder } from './accounts/idempotency-store.js'
import { findPublicSender } from './accounts/public-sender.js'
import { RestoreHold } from './accounts/restore-hold-store.js'
import { findActingWorkspace } from './accounts/workspace-store.js'
import { keyAuthenticator } from './accounts/keys.js'
import { openAppliance, requireInitialised, type Appliance } from './appliance.js'
import { findContact } from './audience/contacts/contacts.js'
import { baseUrl } from './config/base-url.js'
import type { Config } from './config/config.js'
import type { Queries } from './db/database.js'
import { openControl } from './control.js'
import { AsyncDisposableStack } from './core/async-disposable-stack.js'
import { VERSION } from './core/version.js'
import { takeServeLock } from './db/sqlite/serve-lock.js'
import { Dispatcher } from './events/dispatcher.js'
import { buildApp } from './http/app.js'
import { documentationRoutes } from './http/openapi/routes.js'
import { buildPublicApp, type PublicApp } from './http/public/public-app.js'
import type { PublicRoute } from './http/public/public-route.js'
import { servedTogether } from './http/public/served-together.js'
import type { Route } from './http/route.js'
import { SlidingWindow } from './http/sliding-window.js'
import { openInbound } from './inbound/open-inbound.js'
import { openLinkKeys } from './mail/links/link-keys.js'
import { openMailListeners, type MailAddresses } from './mail-listeners.js'
import { deleteOrphanedParts, type MessageContent } from './messages/content-store.js'
import { openRequestedMail } from './msa/rest/requested-mail.js'
import { LoginGuard } from './msa/submission/login-guard.js'
import { loginRoutes } from './msa/submission/login-routes.js'
import { SandboxRunner } from './msa/sandbox/sandbox-runner.js'
import { clearLeftBehind } from './msa/store-long-content.js'
import { SenderCache } from './msa/sender-cache.js'
import { openAgent, openJobs, openQueue } from './open-delivery.js'
import { openOutgoingCalls } from './outgoing-calls.js'
import { queueStatusRoutes } from './queue/operator/queue-status-routes.js'
import type { QueueManager } from './queue/queue-manager.js'
import type { OpenResource } from './resource/resource.js'
import { retentionJobs } from './resource/retention.js'
import { CHAPTERS, openResources, OUTGOING } from './resources.js'
import { JobRecords } from './scheduler/job-records.js'
import { Scheduler } from './scheduler/scheduler.js'
import { countDisabledSince } from './webhooks/subscriptions/subscription-store.js'
import { openVisits, visitPages } from './tracking/visits/open-visits.js'
import type { HttpHandler } from './world/net/http-connections.js'
import { listenHttp, type ListenAddress, type Listener } from './world/net/listen.js'
import { spawnThread } from './world/threads.js'
import type { Clock } from './world/time/clock.js'
import type { World } from './world/world.js'

export interface Server extends AsyncDisposable {
  /** Where each listener really listens. */
  readonly addresses: ServerAddresses
  /** Reads again what may change while it runs: the certificate. @throws Error naming the file */
  reload(): Promise<void>
}

export interface ServerAddresses extends MailAddresses {
  readonly http: readonly ListenAddress[]
  /** Of public pages alone; none where they are served beside the API. */
  readonly public: readonly ListenAddress[]
}

/**
 * Resolves once everything listens; disposing drains it within `shutdown_grace`.
 *
 * @throws LockedError, NotInitialisedError, SchemaError, Error naming an address that cannot be listened on
 */
export async function openServer(config: Config, world: World): Promise<Server> {
  const closing = new AsyncDisposableStack()
  try {
    return {
      ...(await openParts(config, world, closing)),
      [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
    }
  } catch (error) {
    await closing[Symbol.asyncDispose]()
    throw error
  }
}

async function openParts(
  config: Config,
  world: World,
  closing: AsyncDisposableStack,
): Promise<Pick<Server, 'addresses' | 'reload'>> {
  requireInitialised(config)
  closing.use(takeServeLock(config.dataDir))
  const appliance = closing.use(await openAppliance({ config, world, mayMigrate: true, isServing: true }))
  const hold = new RestoreHold(appliance.database.reader)
  await hold.look()
  if (hold.isHeld) world.log.warn('a restored copy: nothing is sent until `postroad queue release --all`')
  // The queue and the consumers tell each other of new work, so each is opened with a way to the other.
  const onEnqueued = (lane: string, dueAt: number) => queue.noteEnqueued(lane, dueAt)
  const onAppended = () => dispatcher.wake()
  const inbound = await openInbound({ ...inboundParts(appliance), onEnqueued, onAppended })
  const jobs = openJobs(appliance)
  const sandboxes = new SandboxRunner({ ...world, database: appliance.database, onEvents: onAppended })
  const submit = {
    ...submitParts(appliance),
    onEnqueued,
    onStored: (content: MessageContent) => jobs.offer(content),
    onEvents: onAppended,
    onSandboxScheduled: (dueAt: number) => sandboxes.noteScheduled(dueAt),
  }
  const send = {
    ...submit,
    senders: new SenderCache(appliance.database.reader, appliance.watch, config.mta.sharedAddress ?? ''),
    messageLimit: config.limits.messageSizeBytes,
  }
  const calls = openOutgoingCalls(appliance)
  closing.defer(() => calls.close())
  const resources = openResources(
    {
      ...resourceParts(appliance),
      send,
      openRequestedMail: workspaceId => openRequestedMail(send, workspaceId),
      keptMail: inbound.kept,
      eventLog: { passed: () => dispatcher.passed(), retrySetAside: () => dispatcher.retrySetAside() },
      onEvents: onAppended,
      outgoingCalls: calls.of,
    },
    config,
  )
  const dispatcher: Dispatcher = new Dispatcher(
    { database: appliance.database, ...world },
    resources.flatMap(({ consumers = [] }) => consumers),
  )
  closing.defer(() => dispatcher.stop())
  closing.defer(() => inbound.processor.stop())
  const agent = openAgent(appliance)
  closing.defer(() => agent.terminate())
  const queue: QueueManager = openQueue(appliance, agent, jobs, hold, onAppended)
  await clearLeftBehind(appliance.database)
  await appliance.database.write(tx => deleteOrphanedParts(tx.db))
  await dispatcher.start()
  await queue.start()
  inbound.processor.start()
  sandboxes.start()
  closing.defer(() => sandboxes.stop())
  const graceLeft = graceFrom(world.clock, config.shutdownGraceMs)
  closing.defer(() => stopQueue(queue, graceLeft(), world))
  const api = openApi(
    appliance,
    resources.flatMap(({ routes = [] }) => routes),
  )
  const visits = await openVisits({ ...visitParts(appliance), onEvents: onAppended })
  closing.defer(() => visits.close())
  const pages = visits.before(
    openPages(appliance, [...resources.flatMap(({ pages = [] }) => pages), ...visitPages]),
  )
  const { loginFailures: failures, loginLockoutMs: lockoutMs } = config.submission
  const guard = new LoginGuard(world.clock, { failures, lockoutMs })
  const control = await openControl(appliance, [...queueStatusRoutes(queue), ...loginRoutes(guard)])
  closing.defer(() => control.close(graceLeft()))
  const listeners: Record<'http' | 'public', Listener[]> = { http: [], public: [] }
  closing.defer(() => closeAll([...listeners.http, ...listeners.public], graceLeft()))
  const { listen, publicListen } = config.http
  const beside = publicListen.length === 0 ? servedTogether(api, pages) : api
  for (const address of listen)
    listeners.http.push(await listenHttp(address, beside, config.http, world.clock))
  for (const address of publicListen)
    listeners.public.push(await listenHttp(address, pages, config.http, world.clock))
  const mail = await openMailListeners(appliance, submit, inbound.receiver, guard)
  closing.defer(() => mail.close(graceLeft()))
  const retentions = resources.flatMap(({ retention = [] }) => retention)
  const planned = [
    ...resources.flatMap(({ jobs = [] }) => jobs),
    ...retentionJobs({ ...world, database: appliance.database }, retentions, config.retention),
  ]
  const records = new JobRecords({ ...world, database: appliance.database })
  await records.open(planned)
  const scheduler = new Scheduler({ ...world, records, isHeld: () => hold.isHeld }, planned)
  scheduler.start()
  closing.defer(() => stopResources(resources))
  closing.defer(() => scheduler.stop(graceLeft()))
  const http = listeners.http.map(({ address }) => address)
  const open = listeners.public.map(({ address }) => address)
  return { addresses: { http, public: open, ...mail.addresses }, reload: () => mail.reload() }
}

function openApi(
  { config, world, database, newId, watch }: Appliance,
  routes: readonly Route[],
): HttpHandler {
  return buildApp(
    {
      ...world,
      newId,
      authenticate: keyAuthenticator(database, watch),
      anonymousRateLimit: config.http.anonymousRateLimit,
      findAnswer: answerFinder(database.reader),
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
}

function openPages({ config, world, newId }: Appliance, pages: readonly PublicRoute[]): PublicApp {
  const { publicRateLimit: rateLimit, trustedProxies } = config.http
  return buildPublicApp({ ...world, newId, rateLimit, trustedProxies }, pages)
}

function visitParts({ config, world, database, linkSecrets }: Appliance) {
  const { trustedProxies } = config.http
  return { ...world, database, dataDir: config.dataDir, keys: openLinkKeys(linkSecrets), trustedProxies }
}

function resourceParts({ config, world, database, newId, domains, linkSecrets, box }: Appliance) {
  return {
    ...world,
    database,
    newId,
    spawn: spawnThread,
    domains,
    box,
    countDisabledWebhooks: countDisabledSince,
    linkKeys: openLinkKeys(linkSecrets),
    freshResolver: domains.freshResolver,
    hostname: config.hostname,
    isCaptured: config.mta.capture,
    keptMailMs: config.inbound.keepMs,
    findContact,
    findMergeContact: (db: Queries, workspaceId: string, id: string) => findContact(db, workspaceId, { id }),
    findBrand: findActingWorkspace,
    findPublicSender,
    publicUrl: config.publicUrl,
  }
}

function inboundParts({ config, world, database, newId, returnPathKeys }: Appliance) {
  return {
    ...world,
    database,
    newId,
    spawn: spawnThread,
    keys: returnPathKeys,
    hostname: config.hostname,
    returnPathDomain: config.mta.returnPathDomain,
    messageSize: config.inbound.messageSizeBytes,
    unsignedMessageSize: config.inbound.unsignedMessageSizeBytes,
    limits: {
      mailsPerMinute: config.inbound.unsignedPerMinute,
      octetsPerHour: config.inbound.unsignedSizePerHourBytes,
      octetsPerHourInAll: config.inbound.unsignedSizePerHourInAllBytes,
    },
    keepSize: config.inbound.keepSizeBytes,
    forwardTo: config.inbound.forwardTo,
    expireMs: config.mta.retry.expireMs,
  }
}

function submitParts({ config, world, database, newId }: Appliance) {
  return {
    database,
    clock: world.clock,
    log: world.log,
    newId,
    emailWindows: new SlidingWindow(world.clock),
    expireMs: config.mta.retry.expireMs,
  }
}

/** What is left of the one grace that all steps of closing share, ms; it begins with the first that asks. */
function graceFrom(clock: Clock, graceMs: number): () => number {
  let end: number | undefined
  return () => {
    end ??= clock.monotonic() + graceMs
    return Math.max(0, end - clock.monotonic())
  }
}

/** What the end of the grace breaks off has to be written down. */
const WRITING_DOWN_MS = 1_000

/**
 * A server may take ten minutes to answer the final dot (RFC 5321 §4.5.3.2.6), and such a delivery is not broken off. At the
 * end of the grace it is left: its next attempt stands in the database.
 */
async function stopQueue(
  queue: QueueManager,
  graceMs: number,
  { clock, log }: Pick<World, 'clock' | 'log'>,
): Promise<void> {
  const isOver = new AbortController()
  const writingMs = Math.min(WRITING_DOWN_MS, graceMs / 5)
  const limitMs = Math.max(WRITING_DOWN_MS, graceMs)
  try {
    await Promise.race([queue.stop(graceMs - writingMs), clock.sleep(limitMs, isOver.signal)])
  } finally {
    isOver.abort()
  }
  if (queue.activeCount === 0) return
  log.warn('deliveries left without the reply to their final dot', { deliveries: queue.activeCount })
  await queue.leave()
}

async function stopResources(resources: readonly OpenResource[]): Promise<void> {
  await Promise.all(resources.map(async one => one.stop?.()))
}

async function closeAll(listeners: readonly Listener[], graceMs: number): Promise<void> {
  await Promise.all(listeners.map(listener => listener.close(graceMs)))
}
