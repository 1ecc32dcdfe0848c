/**
 * Wires outgoing delivery: the queue, its job loader, and the delivery threads.
 *
 * Part of the composition root, used by `phases/`. Only translates configuration into options.
 */
import { readFileSync } from 'node:fs'
import type { PostAccountMail } from '../accounts/operators/account-mail.js'
import type { RestoreHold } from '../accounts/restore-hold-store.js'
import { nameServers, openResolver, type Appliance } from './appliance.js'
import type { Membership } from '../cluster/membership.js'
import type { Config } from '../config/config.js'
import { given } from '../core/given.js'
import { APPLIANCE } from '../core/owner.js'
import { findApplianceDomain, readSigningKeys } from '../deliverability/domains/domain-store.js'
import { addressDomain, parseAddress } from '../mail/address.js'
import type { LinkOptions } from '../mta/render.js'
import { findRoute } from '../mta/routing/route.js'
import { openSiteLocator } from '../mta/routing/locate-site.js'
import { StsPolicies } from '../mta/routing/mta-sts.js'
import type { AgentOptions } from '../mta/workers/worker-agent.js'
import { openWorkerPool, type WorkerPool } from '../mta/workers/worker-pool.js'
import type { DeliveryAgent, DeliveryJob, LocateSite } from '../queue/delivery-agent.js'
import { JobLoader } from '../queue/claiming/job-loader.js'
import type { OnAttempt } from '../queue/delivery/record-outcomes.js'
import { NodeShares } from '../queue/node-shares.js'
import { QueueManager } from '../queue/queue-manager.js'
import { openHttpClient } from '../world/net/fetch.js'
import { egressPolicyFor } from '../world/net/egress-policy.js'
import { availableThreads, spawnThread } from '../world/threads.js'

export function openJobs({ world, database, domains, returnPath }: Appliance): JobLoader {
  return new JobLoader({
    reader: database.reader,
    clock: world.clock,
    returnPath,
    readSigningKeys: ids => readSigningKeys(database.reader, ids, domains.seal),
  })
}

export interface QueueNeeds {
  readonly appliance: Appliance
  readonly agent: DeliveryAgent
  readonly jobs: JobLoader
  readonly hold: RestoreHold
  readonly membership: Membership
  readonly locateSite: LocateSite
  /** Called after outcomes and their events were committed. */
  readonly onSettled: () => void
  readonly onAttempt: OnAttempt
}

export function openQueue({ appliance, membership, ...needs }: QueueNeeds): QueueManager {
  const { config, world, database } = appliance
  const { connections, retry } = config.mta
  return new QueueManager({
    ...world,
    ...needs,
    database,
    policy: { retry, connections },
    incarnation: membership.nodeId,
    shares: database.shared && new NodeShares({ ...world, database: database.shared, membership }),
  })
}

/** Finds a destination's site; commands that work by site use it as the queue does. */
export function siteLocator({ config, world }: Pick<Appliance, 'config' | 'world'>): LocateSite {
  return openSiteLocator({
    resolver: openResolver(config, world),
    routes: routerOptions(config).routes,
    sites: config.mta.sites,
    connectionsPerSite: config.mta.connectionsPerDestination,
  })
}

/** As `siteLocator`; what it goes by can be replaced while it is used. */
export function replaceableLocator({ config, world }: Appliance) {
  let current = siteLocator({ config, world })
  return {
    locate: (name => current(name)) satisfies LocateSite,
    replace(next: Config): void {
      current = siteLocator({ config: next, world })
    },
  }
}

/** Delivers in threads, which receive their settings as plain values. */
export function openAgent(appliance: Appliance, config: Config = appliance.config): WorkerPool {
  const {
    world: { clock, log, taskLimitMs },
  } = appliance
  const { workers, connectionIdleMs, timeouts } = config.mta
  const count = workers === 0 ? availableThreads() : workers
  return openWorkerPool({
    clock,
    log,
    spawn: spawnThread,
    workers: count,
    agent: agentOptions(config, linkOptions(appliance), count),
    idleMs: connectionIdleMs,
    taskLimitMs,
    quitMs: timeouts.quitMs,
  })
}

/** Keys of the links in mail. */
export function linkOptions({ config, linkSecrets, returnPathKeys }: Appliance): LinkOptions {
  const [unsubscribeKey] = returnPathKeys
  if (!unsubscribeKey) throw new Error('missing return path secret')
  const { returnPathDomain: unsubscribeDomain } = config.mta
  return { secrets: linkSecrets, publicUrl: config.publicUrl, unsubscribeDomain, unsubscribeKey }
}

/** Author of the appliance's own mail to operators. */
export function accountMailFrom({ hostname, mta }: Config): string {
  return mta.sharedAddress ?? `postmaster@${hostname}`
}

/** Offers the appliance's own mail to its recipient's hosts by the ordinary routes, from the null return path, signed if the domain has keys. */
export function accountPost(
  { config, database, domains }: Appliance,
  agent: Pick<DeliveryAgent, 'deliver'>,
): PostAccountMail {
  return async ({ id, recipient, attempt, createdAt, subject, message }, signal) => {
    const address = parseAddress(recipient, { allowSingleLabel: true })
    if (!address) return { kind: 'failed', reason: `${recipient} is not an address that mail can be sent to` }
    const signing = await findApplianceDomain(database.reader, addressDomain(accountMailFrom(config)))
    const keys =
      signing && (await readSigningKeys(database.reader, [signing.id], domains.seal)).get(signing.id)
    const job: DeliveryJob = {
      messageId: id,
      workspaceId: APPLIANCE,
      envelopeSender: '',
      recipient: address.address,
      attempt,
      acceptedAt: createdAt,
      content: { kind: 'relayed', subject, message },
      signingKeys: keys ?? [],
    }
    const outcome = await agent.deliver(job, signal)
    const { summary: reason } = outcome
    switch (outcome.kind) {
      case 'delivered':
        return { kind: 'delivered', reason, isCaptured: outcome.captured !== undefined }
      case 'deferred':
        return { kind: 'deferred', reason, ...given({ retryAfterMs: outcome.retryAfterMs }) }
      case 'bounced':
      case 'unsendable':
        return { kind: 'failed', reason }
    }
  }
}

/** Composes messages without sending them. The thread starts with the first one. */
export function openComposer(
  appliance: Appliance,
): Pick<DeliveryAgent, 'deliver'> & { close(): Promise<void> } {
  const { clock, log, taskLimitMs } = appliance.world
  const { hostname, mta } = appliance.config
  let pool: WorkerPool | undefined
  const open = () =>
    openWorkerPool({
      clock,
      log,
      spawn: spawnThread,
      workers: 1,
      agent: { kind: 'capture', hostname, links: linkOptions(appliance) },
      idleMs: 0,
      taskLimitMs,
      quitMs: mta.timeouts.quitMs,
    })
  return {
    deliver: (job, signal) => (pool ??= open()).deliver(job, signal),
    close: async () => pool?.terminate(),
  }
}

function agentOptions(config: Config, links: LinkOptions, workers: number): AgentOptions {
  const { hostname, mta, dns } = config
  if (mta.capture) return { kind: 'capture', hostname, links }
  return {
    kind: 'smtp',
    links,
    ...routerOptions(config),
    dns: { servers: nameServers(config), timeoutMs: dns.timeoutMs },
    mtaSts: mta.mtaSts,
    allowPrivate: mta.allowPrivate,
    authorities: mta.tlsCa === '' ? '' : readFileSync(mta.tlsCa, 'utf8'),
    timeouts: mta.timeouts,
    sourceAddresses: mta.sourceAddresses,
    sourcePools: mta.sourcePools,
    pool: {
      messagesPerConnection: mta.connectionMessages,
      idleMs: mta.connectionIdleMs,
      // Each thread has its own pool.
      idleConnections: Math.ceil(mta.connections / workers),
    },
  }
}

/** Describes the hosts that mail to a domain is offered to, or why there are none. */
export function routeDescriber({
  live,
  world,
}: Pick<Appliance, 'live' | 'world'>): (domain: string) => Promise<readonly string[]> {
  return async domain => {
    const route = await findRoute(routerParts({ config: live.current, world }), domain)
    return route.kind === 'endpoints'
      ? route.endpoints.map(({ host, address, port }) => `${host} [${address}]:${port}`)
      : [route.summary]
  }
}

function routerParts({ config, world }: Pick<Appliance, 'config' | 'world'>) {
  const { clock, systemLookup, random } = world
  const resolver = openResolver(config, world)
  const egress = egressPolicyFor(config.mta)
  const sts = { clock, resolver, http: openHttpClient(clock, { egress }) }
  return {
    ...routerOptions(config),
    resolver,
    egress,
    systemLookup,
    random,
    ...(config.mta.mtaSts ? { stsPolicies: new StsPolicies(sts) } : {}),
  }
}

function routerOptions({ hostname, mta }: Config) {
  return {
    hostname,
    port: mta.port,
    ownAddresses: [...mta.sourceAddresses, ...mta.sourcePools.flatMap(({ addresses }) => addresses)],
    routes: mta.routes.map(({ username, password, passwordWithoutVerification, ...route }) => ({
      ...route,
      ...(username === '' ? {} : { username, password, allowUnverifiedAuth: passwordWithoutVerification }),
    })),
    tlsSites: mta.sites,
  }
}
