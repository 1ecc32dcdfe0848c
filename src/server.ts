/**
 * The composition root: opens every part, hands each what it needs, and closes them in the right order.
 *
 * Order of closing: first nothing new comes in (HTTP), then what is under way is delivered or broken off (queue), then
 * consumers finish, then the database.
 */
import type { RequestListener } from 'node:http'
import { accountRoutes, healthRoutes } from './accounts/routes.js'
import { keyAuthenticator } from './accounts/keys.js'
import { nameServers, openAppliance, openResolver, requireInitialised, type Appliance } from './appliance.js'
import type { Config } from './config/config.js'
import { Closing } from './core/closing.js'
import { VERSION } from './core/version.js'
import { ping } from './db/ping.js'
import { takeServeLock } from './db/serve-lock.js'
import { domainRoutes } from './deliverability/domain-routes.js'
import { readSigningKeys } from './deliverability/domain-store.js'
import { Dispatcher } from './events/dispatcher.js'
import { buildApp } from './http/app.js'
import { openApiRoute } from './http/openapi.js'
import type { Route } from './http/route.js'
import { SlidingWindow } from './http/sliding-window.js'
import { emailRoutes } from './msa/email-routes.js'
import { StsPolicies } from './mta/mta-sts.js'
import type { AgentOptions } from './mta/worker-agent.js'
import { openSiteLocator } from './mta/locate-site.js'
import { openWorkerPool, type WorkerPool } from './mta/worker-pool.js'
import { captureRoutes } from './queue/capture-routes.js'
import type { DeliveryAgent, LocateSite } from './queue/delivery-agent.js'
import { JobLoader } from './queue/job-loader.js'
import { QueueRunner } from './queue/queue-runner.js'
import { queueStatusRoutes } from './queue/queue-status-routes.js'
import type { Clock } from './world/clock.js'
import { openHttpClient } from './world/fetch.js'
import { listenHttp, type ListenAddress, type Listener } from './world/listen.js'
import { availableThreads, spawnThread } from './world/threads.js'
import type { World } from './world/world.js'

export interface Server extends AsyncDisposable {
  /** Where HTTP really listens. */
  readonly addresses: readonly ListenAddress[]
}

/**
 * Resolves once everything listens; disposing drains it within `shutdown_grace`.
 *
 * @throws LockedError, NotInitialisedError, SchemaError, Error naming an address that cannot be listened on
 */
export async function openServer(config: Config, world: World): Promise<Server> {
  const closing = new Closing()
  try {
    return {
      addresses: await openParts(config, world, closing),
      [Symbol.asyncDispose]: () => closing[Symbol.asyncDispose](),
    }
  } catch (error) {
    await closing[Symbol.asyncDispose]()
    throw error
  }
}

async function openParts(config: Config, world: World, closing: Closing): Promise<ListenAddress[]> {
  requireInitialised(config)
  closing.use(takeServeLock(config.dataDir))
  const appliance = closing.use(await openAppliance({ config, world, mayMigrate: true }))
  const dispatcher = new Dispatcher({ database: appliance.database, ...world }, [])
  dispatcher.start()
  closing.defer(() => dispatcher.stop())
  const agent = openAgent(appliance)
  closing.defer(() => agent.terminate())
  const queue = openQueue(appliance, agent, () => dispatcher.wake())
  await queue.start()
  const graceLeft = graceFrom(world.clock, config.shutdownGraceMs)
  closing.defer(() => stopQueue(queue, graceLeft(), world))
  const app = buildApp(
    {
      ...world,
      newId: appliance.newId,
      authenticate: keyAuthenticator(appliance.database, world.clock),
      anonymousRateLimit: config.http.anonymousRateLimit,
    },
    routesOf(appliance, queue),
  )
  const answer = app.callback()
  const handler: RequestListener = (request, response) => void answer(request, response)
  const listeners: Listener[] = []
  closing.defer(() => closeAll(listeners, graceLeft()))
  for (const address of config.http.listen) listeners.push(await listenHttp(address, handler, world.clock))
  return listeners.map(listener => listener.address)
}

function openQueue(appliance: Appliance, agent: DeliveryAgent, onSettled: () => void): QueueRunner {
  const { config, world, database, domains, returnPath } = appliance
  const { connections, retry } = config.mta
  return new QueueRunner({
    ...world,
    database,
    agent,
    jobs: new JobLoader({
      reader: database.reader,
      clock: world.clock,
      returnPath,
      readSigningKeys: ids => readSigningKeys(database.reader, ids, domains.seal),
    }),
    locateSite: siteLocator(appliance),
    policy: { retry, connections },
    onSettled,
  })
}

/** Which site a destination belongs to; commands that work by site find it as the queue does. */
export function siteLocator({ config, world }: Pick<Appliance, 'config' | 'world'>): LocateSite {
  return openSiteLocator({
    resolver: openResolver(config, world),
    routes: routerOptions(config).routes,
    sites: config.mta.sites,
    connectionsPerSite: config.mta.connectionsPerDestination,
  })
}

/** Delivers in threads, which get what they need to know as plain values. */
function openAgent({ config, world: { clock, log } }: Pick<Appliance, 'config' | 'world'>): WorkerPool {
  const { workers, connectionIdleMs, timeouts } = config.mta
  const count = workers === 0 ? availableThreads() : workers
  return openWorkerPool({
    clock,
    log,
    spawn: spawnThread,
    workers: count,
    agent: agentOptions(config, count),
    idleMs: connectionIdleMs,
    quitMs: timeouts.quitMs,
  })
}

function agentOptions(config: Config, workers: number): AgentOptions {
  const { hostname, mta, dns } = config
  if (mta.capture) return { kind: 'capture', hostname }
  return {
    kind: 'smtp',
    ...routerOptions(config),
    dns: { servers: nameServers(config), timeoutMs: dns.timeoutMs },
    mtaSts: mta.mtaSts,
    timeouts: {
      connect: mta.timeouts.connectMs,
      greeting: mta.timeouts.greetingMs,
      ehlo: mta.timeouts.ehloMs,
      starttls: mta.timeouts.starttlsMs,
      mail: mta.timeouts.mailMs,
      rcpt: mta.timeouts.rcptMs,
      data: mta.timeouts.dataMs,
      block: mta.timeouts.blockMs,
      finalDot: mta.timeouts.finalDotMs,
      quit: mta.timeouts.quitMs,
    },
    sourceAddresses: mta.sourceAddresses,
    pool: {
      messagesPerConnection: mta.connectionMessages,
      idleMs: mta.connectionIdleMs,
      // Each thread has a pool of its own.
      idleConnections: Math.ceil(mta.connections / workers),
    },
  }
}

/** What finding a route takes; `postroad send --dry-run` shows the result. */
export function routerParts({ config, world }: Pick<Appliance, 'config' | 'world'>) {
  const { clock, systemLookup, random } = world
  const resolver = openResolver(config, world)
  const sts = { clock, resolver, http: openHttpClient(clock) }
  return {
    ...routerOptions(config),
    resolver,
    systemLookup,
    random,
    ...(config.mta.mtaSts ? { stsPolicies: new StsPolicies(sts) } : {}),
  }
}

function routerOptions({ hostname, mta }: Config) {
  return {
    hostname,
    port: mta.port,
    ownAddresses: mta.sourceAddresses,
    routes: mta.routes.map(({ credentials, ...route }) => ({ ...route, ...credentials })),
    tlsSites: mta.sites,
  }
}

function routesOf(appliance: Appliance, queue: QueueRunner): Route[] {
  const { config, world, database, newId, domains } = appliance
  const routes = [
    ...healthRoutes(VERSION, () => ping(database)),
    ...accountRoutes(),
    ...domainRoutes(domains),
    ...emailRoutes({
      database,
      clock: world.clock,
      newId,
      emailWindows: new SlidingWindow(world.clock),
      expireMs: config.mta.retry.expireMs,
      onEnqueued: (lane, dueAt) => queue.noteEnqueued(lane, dueAt),
      sharedAddress: config.mta.sharedAddress ?? '',
    }),
    ...queueStatusRoutes(queue),
    ...(config.mta.capture ? captureRoutes(database.reader) : []),
  ]
  return [...routes, openApiRoute(routes, VERSION)]
}

/** What is left of the one grace that all steps of closing share, ms; it begins with the first that asks. */
function graceFrom(clock: Clock, graceMs: number): () => number {
  let end: number | undefined
  return () => {
    end ??= clock.monotonic() + graceMs
    return Math.max(0, end - clock.monotonic())
  }
}

/** What the end of the grace broke off has to be written down. */
const AFTER_GRACE_MS = 1_000

/**
 * A server may take ten minutes to answer the final dot (RFC 5321 §4.5.3.2.6), and such a delivery is not broken off. After
 * the grace it is left as a crash would leave it: its next attempt stands in the database.
 */
async function stopQueue(
  queue: QueueRunner,
  graceMs: number,
  { clock, log }: Pick<World, 'clock' | 'log'>,
): Promise<void> {
  const isOver = new AbortController()
  try {
    await Promise.race([queue.stop(graceMs), clock.sleep(graceMs + AFTER_GRACE_MS, isOver.signal)])
  } finally {
    isOver.abort()
  }
  if (queue.activeCount > 0)
    log.warn('deliveries left without the reply to their final dot', { deliveries: queue.activeCount })
}

async function closeAll(listeners: readonly Listener[], graceMs: number): Promise<void> {
  await Promise.all(listeners.map(listener => listener.close(graceMs)))
}
