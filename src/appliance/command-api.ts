/**
 * The API as a command serves it to itself while no server runs on the data folder: the same routes on a private Unix socket.
 *
 * Nothing runs beside it but the jobs that the command needs: what else a route sets going (deliveries, events) is done by the server that
 * starts next.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RenderQueue } from '../content/rendering/render-queue.js'
import { RecentReplies } from '../queue/operator/recent-replies.js'
import { LiveChanges } from '../metrics/live-changes.js'
import { Metrics } from '../metrics/metrics.js'
import { MailQuota } from '../inbound/intake/mail-quota.js'
import { SubmissionGatherer } from '../msa/submission-gatherer.js'
import { SenderCache } from '../msa/sender.js'
import type { WorkerPool } from '../mta/workers/worker-pool.js'
import type { Settings } from '../config/settings.js'
import type { Log } from '../world/log.js'
import type { Appliance } from './appliance.js'
import { openControl } from './listeners/control.js'
import { openAgent, openComposer, siteLocator } from './open-delivery.js'
import { openOutgoingCalls } from './outgoing-calls.js'
import { loginGuardOf, resourceParts, submitParts } from './resource-parts.js'
import { openResources } from './resources.js'

export interface CommandApi {
  readonly socketPath: string
  close(): Promise<void>
}

export interface CommandNeeds {
  /** Shown by `GET /configuration`. */
  readonly settings?: Settings
  /** Names of jobs of resources that finish what the command sets going. */
  readonly jobs?: readonly string[]
}

export async function openCommandApi(
  opened: Appliance,
  { jobs = [], settings }: CommandNeeds = {},
): Promise<CommandApi> {
  const world = { ...opened.world, log: errorsOnly(opened.world.log) }
  const appliance = { ...opened, world }
  const { config, database } = appliance
  let agent: WorkerPool | undefined
  const renderQueue = new RenderQueue({
    clock: world.clock,
    render: request => (agent ??= openAgent(appliance)).render(request),
  })
  const calls = openOutgoingCalls(appliance)
  const composer = openComposer(appliance)
  const guard = loginGuardOf(appliance)
  const submit = { ...submitParts(appliance), onEnqueued: () => {} }
  const send = {
    ...submit,
    gatherer: new SubmissionGatherer(submit),
    renderQueue,
    senders: new SenderCache(database, world.clock, config.mta.sharedAddress ?? ''),
    messageLimit: config.limits.messageSizeBytes,
  }
  const resources = openResources(
    resourceParts(appliance, {
      send,
      renderQueue,
      inboundQuota: await MailQuota.count(database.reader, config.inbound.keepSizeBytes),
      eventLog: { passed: async () => 0, retrySetAside: async () => 0 },
      onEvents: () => {},
      onHolds: () => {},
      outgoingCalls: calls.of,
      metrics: new Metrics(),
      judgeHealth: async () => ({ reasons: [], setAside: 0, disabledWebhooks: 0, consumerLag: undefined }),
      node: () => undefined,
      guard,
      runningQueue: () => undefined,
      locateSite: siteLocator(appliance),
      live: () => undefined,
      replies: new RecentReplies(world.clock),
      liveChanges: new LiveChanges(database),
      jobs: undefined,
      composer,
      // A command runs no job that delivers: what it stores waits for the server.
      agent: composer,
      settings,
      certificates: undefined,
    }),
    config,
  )
  const folder = mkdtempSync(join(tmpdir(), 'postroad-'))
  const socketPath = join(folder, 'api.sock')
  const control = await openControl(appliance, socketPath, [
    ...resources.flatMap(({ routes = [] }) => routes),
  ])
  const closing = new AbortController()
  const running = resources
    .flatMap(one => one.jobs ?? [])
    .filter(({ name }) => jobs.includes(name))
    .map(job => job.run(closing.signal))
  return {
    socketPath,
    async close() {
      closing.abort()
      await Promise.allSettled(running)
      await control.close(0)
      rmSync(folder, { recursive: true, force: true })
      await Promise.all(resources.map(async one => one.stop?.()))
      calls.close()
      await agent?.terminate()
      await composer.close()
    },
  }
}

/** Standard output is the command's, which reports results and refused requests itself. */
function errorsOnly(log: Log): Log {
  return {
    debug() {},
    info() {},
    warn() {},
    error: (event, fields) => log.error(event, fields),
    setLevel() {},
    setFormat() {},
    flush: () => log.flush(),
  }
}
