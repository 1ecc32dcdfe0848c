/**
 * The composition root: opens every part, hands each what it needs, and closes them in the right order.
 *
 * Order of closing: first nothing new comes in (HTTP), then what is under way is delivered or broken off (queue), then
 * consumers finish, then the database.
 */
import type { RequestListener } from 'node:http'
import { accountRoutes, healthRoutes } from './accounts/routes.js'
import { keyAuthenticator } from './accounts/keys.js'
import { openAppliance, openResolver, requireInitialised, type Appliance } from './appliance.js'
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
import { openCaptureAgent } from './mta/capture-agent.js'
import { openSmtpAgent } from './mta/smtp-agent.js'
import { captureRoutes } from './queue/capture-routes.js'
import type { DeliveryAgent } from './queue/delivery-agent.js'
import { JobLoader } from './queue/job-loader.js'
import { QueueRunner } from './queue/queue-runner.js'
import { listenHttp, type ListenAddress, type Listener } from './world/listen.js'
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
  const queue = openQueue(appliance, () => dispatcher.wake())
  await queue.start()
  closing.defer(() => queue.stop(config.shutdownGraceMs))
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
  closing.defer(() => closeAll(listeners, config.shutdownGraceMs))
  for (const address of config.http.listen) listeners.push(await listenHttp(address, handler, world.clock))
  return listeners.map(listener => listener.address)
}

function openQueue(appliance: Appliance, onSettled: () => void): QueueRunner {
  const { config, world, database, returnPath } = appliance
  const { connections, connectionsPerDestination, retry } = config.mta
  return new QueueRunner({
    ...world,
    database,
    agent: openAgent(appliance),
    jobs: new JobLoader({
      reader: database.reader,
      clock: world.clock,
      returnPath,
      readSigningKeys: ids => readSigningKeys(database.reader, ids),
    }),
    policy: { retry, connections, connectionsPerDestination },
    onSettled,
  })
}

/** Also opened by `postroad send --dry-run`, to show where a mail would go. */
export function openAgent({ config, world }: Pick<Appliance, 'config' | 'world'>): DeliveryAgent {
  const { hostname, mta } = config
  if (mta.capture) return openCaptureAgent({ clock: world.clock, hostname })
  return openSmtpAgent({
    ...routerParts({ config, world }),
    clock: world.clock,
    dialler: world.dialler,
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
      idleConnections: mta.connections,
    },
  })
}

export function routerParts({ config, world }: Pick<Appliance, 'config' | 'world'>) {
  const { hostname, mta } = config
  return {
    resolver: openResolver(config, world),
    systemLookup: world.systemLookup,
    random: world.random,
    hostname,
    port: mta.port,
    ownAddresses: mta.sourceAddresses,
    routes: mta.routes.map(({ credentials, ...route }) => ({ ...route, ...credentials })),
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
      onEnqueued: (destination, dueAt) => queue.noteEnqueued(destination, dueAt),
      sharedAddress: config.mta.sharedAddress ?? '',
    }),
    ...(config.mta.capture ? captureRoutes(database.reader) : []),
  ]
  return [...routes, openApiRoute(routes, VERSION)]
}

async function closeAll(listeners: readonly Listener[], graceMs: number): Promise<void> {
  await Promise.all(listeners.map(listener => listener.close(graceMs)))
}
