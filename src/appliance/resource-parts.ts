/**
 * The dependencies of resources, from the appliance and from what runs: the server passes its queue and dispatcher, a command that serves
 * the API itself (`command-api.ts`) passes parts at rest.
 */
import { readSecretKey } from '../accounts/secret-sealing.js'
import { findActingWorkspace, findPublicSender, findWorkspace } from '../accounts/workspace-store.js'
import { LoginGuard } from '../accounts/login-guard.js'
import { SharedLoginJournal } from '../accounts/login-journal.js'
import { recheckOperator } from '../accounts/operators/access.js'
import { Passwords } from '../accounts/operators/password.js'
import { sumCampaignRevenue, sumVariantRevenue } from '../analytics/conversions/conversion-store.js'
import { dayOf, readClientOpens } from '../analytics/statistics/counter-store.js'
import { findContact } from '../audience/contacts/contacts.js'
import { followSuppressions } from '../audience/contacts/follow-suppressions.js'
import { findVariantOf } from '../campaigns/model/recipient-store.js'
import { findCampaign } from '../campaigns/model/campaign-store.js'
import type { RenderQueue } from '../content/rendering/render-queue.js'
import type { Settings } from '../config/settings.js'
import type { Queries } from '../db/database.js'
import type { JudgeHealth } from '../health/judge-health.js'
import { SlidingWindow, type OpenWindow } from '../http/sliding-window.js'
import type { MailQuota } from '../inbound/intake/mail-quota.js'
import { openLinkKeys } from '../mail/links/link-keys.js'
import type { Metrics } from '../metrics/metrics.js'
import { openMonitorAccess } from '../metrics/resource.js'
import { openRequestedMail } from '../msa/rest/requested-mail.js'
import type { SendParts } from '../msa/rest/send-email.js'
import { scheduledOfKey } from '../msa/scheduled-of-key.js'
import type { DeliveryAgent, LocateSite } from '../queue/delivery-agent.js'
import type { QueueStatusSource } from '../queue/operator/queue-routes.js'
import { openSiteWaits } from '../queue/waiting.js'
import { holdWorkspaceMail } from '../queue/operator/change-queue.js'
import type { QueuePower } from '../queue/operator/queue-admin-store.js'
import { spawnThread } from '../world/threads.js'
import { isQuietHour } from '../world/time/zone-time.js'
import type { Appliance } from './appliance.js'
import { sendingAddresses } from './doctor/dns-checks.js'
import { examine } from './doctor/doctor.js'
import type { OutgoingCallsOfServer } from './outgoing-calls.js'
import { accountMailFrom, accountPost, openJobs, routeDescriber } from './open-delivery.js'
import { openReferences, type ResourceParts } from './resources.js'

export interface RunningParts {
  /** For limits that hold over all nodes; undefined with SQLite. */
  readonly openWindow?: OpenWindow | undefined
  readonly send: SendParts
  readonly renderQueue: RenderQueue
  readonly inboundQuota: MailQuota
  readonly eventLog: ResourceParts['eventLog']
  /** Called after events were appended and committed. */
  readonly onEvents: () => void
  /** Called after a hold on a campaign's mail changed. */
  readonly onHolds: () => void
  readonly outgoingCalls: OutgoingCallsOfServer['of']
  readonly metrics: Metrics
  readonly judgeHealth: JudgeHealth
  /** This node; undefined if no server runs. */
  readonly node: ResourceParts['node']
  readonly guard: LoginGuard
  /** A function, since the queue opens after the resources; undefined if no server runs. */
  readonly runningQueue: () => QueueStatusSource | undefined
  readonly locateSite: LocateSite
  readonly live: ResourceParts['live']
  readonly replies: ResourceParts['replies']
  readonly liveChanges: ResourceParts['liveChanges']
  /** Undefined if no server runs. */
  readonly jobs: ResourceParts['jobs']
  /** Delivers the appliance's own mail. */
  readonly agent: Pick<DeliveryAgent, 'deliver'>
  /** Composes messages for their source; see `openComposer`. */
  readonly composer: Pick<DeliveryAgent, 'deliver'>
  readonly settings: Settings | undefined
  /** Undefined if no server runs. */
  readonly certificates: ResourceParts['certificates']
}

export function resourceParts(appliance: Appliance, running: RunningParts): ResourceParts {
  const { config, world, database, newId, domains, linkSecrets, box } = appliance
  const { send, onEvents } = running
  return {
    ...world,
    ...running,
    database,
    newId,
    spawn: spawnThread,
    domains,
    box,
    passwords: new Passwords(world.random, world.passwordCost),
    recheckOperator: operator => recheckOperator({ ...world, database }, operator),
    references: openReferences(),
    openRequestedMail: workspaceId => openRequestedMail(send, workspaceId),
    accountMailFrom: accountMailFrom(config),
    postAccountMail: accountPost(appliance, running.agent),
    scheduledMail: scheduledOfKey(database),
    suppressedContacts: followSuppressions(onEvents),
    hasCampaign: async (db, workspaceId, id) => (await findCampaign(db, workspaceId, id)) !== undefined,
    hasWorkspace: async (db, id) => (await findWorkspace(db, id)) !== undefined,
    isQuietHour: () => isQuietHour(world.clock.now()),
    linkKeys: openLinkKeys(linkSecrets),
    freshResolver: domains.freshResolver,
    hostname: config.hostname,
    knowsMonitor: openMonitorAccess(config),
    sendingAddresses: (workspaceId: string) =>
      sendingAddresses(
        { config: appliance.live.current, resolver: domains.freshResolver(), world },
        workspaceId,
      ),
    servesDkimZone: config.dns.listen.length > 0,
    isCaptured: config.mta.capture,
    captureNetworks: config.mta.captureNetworks,
    inboundKeepMs: config.inbound.keepMs,
    dataDir: config.dataDir,
    databaseFile: config.databaseFile,
    secretKey: config.secrets.key && readSecretKey(config.secrets.key),
    diskReserve: () => appliance.live.current.limits.diskReserveBytes,
    holdWorkspaceMail: (workspaceId: string, by: QueuePower) =>
      holdWorkspaceMail({ ...world, database }, workspaceId, by),
    findContact,
    findMergeContact: (db: Queries, workspaceId: string, id: string) => findContact(db, workspaceId, { id }),
    findBrand: findActingWorkspace,
    findClientOpens: (workspaceId: string, since: number) =>
      readClientOpens(database.slowReader, workspaceId, dayOf(since)),
    findPublicSender,
    findRevenue: sumCampaignRevenue,
    findVariantRevenue: sumVariantRevenue,
    findVariant: findVariantOf,
    findSiteWaits: openSiteWaits({ ...world, ...running, database }),
    publicUrl: config.publicUrl,
    returnPath: appliance.returnPath,
    describeRoute: routeDescriber(appliance),
    // Its own cache, since the queue's holds what is being delivered.
    jobLoader: openJobs(appliance),
    config: () => appliance.live.current,
    acmeDirectory: config.tls.acmeDirectory,
    examine: (report, stopping) =>
      examine({
        appliance,
        world,
        report,
        stopping,
        config: appliance.live.current,
        file: running.settings?.request.file ?? 'the configuration file',
        isServing: running.jobs !== undefined,
      }),
  }
}

export function submitParts({ config, world, database, newId }: Appliance, openWindow?: OpenWindow) {
  return {
    database,
    clock: world.clock,
    log: world.log,
    newId,
    emailWindows: openWindow?.('mails of a key') ?? new SlidingWindow(world.clock),
    expireMs: config.mta.retry.expireMs,
  }
}

/** Counts failed logins by the reloadable settings. @param nodeId of a server that may have other nodes */
export function loginGuardOf(
  { live, world, database }: Pick<Appliance, 'live' | 'world' | 'database'>,
  nodeId?: string,
): LoginGuard {
  const limits = {
    get failures() {
      return live.current.submission.loginFailures
    },
    get lockoutMs() {
      return live.current.submission.loginLockoutMs
    },
  }
  const isShared = database.shared !== undefined && nodeId !== undefined
  const journal = isShared ? new SharedLoginJournal({ ...world, database, nodeId, limits }) : undefined
  return new LoginGuard(world.clock, limits, journal)
}
