/**
 * Shared by server and commands: the open database, id generation, and dependencies of stores and services.
 *
 * A command opens its own appliance on the data folder of a running server; the two only share the database.
 */
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SecretBox } from '../accounts/secret-box.js'
import { openSecretBox } from '../accounts/secret-sealing.js'
import { sealTotpSecrets } from '../accounts/operators/operator-store.js'
import { ensureSecret } from '../accounts/secret-store.js'
import { purchaseHistory } from '../analytics/conversions/purchase-history-store.js'
import { provideHistory } from '../audience/segments/rule-history.js'
import { campaignHistory } from '../campaigns/model/campaign-history-store.js'
import { sealAcmeKeys } from '../certificates/acme/acme-store.js'
import type { Config } from '../config/config.js'
import { orderedIds, type NewId } from '../core/ids.js'
import type { Database, OnCommitted } from '../db/database.js'
import { openPostgres } from '../db/postgres/open-postgres.js'
import { openSqlite } from '../db/sqlite/open-sqlite.js'
import { sealKeys } from '../deliverability/domains/dkim/dkim-key-store.js'
import { sealWebhookSecrets } from '../webhooks/subscriptions/secret-seal-store.js'
import type { DomainParts } from '../deliverability/domains/domain-parts.js'
import { ensureApplianceDomain } from '../deliverability/domains/domains.js'
import { renewRetiredKeys } from '../deliverability/domains/dkim/dkim-keys.js'
import { addressDomain } from '../mail/address.js'
import { makeReturnPath, type ReturnPathKey } from '../mail/return-path.js'
import type { TokenKey } from '../mail/signed-token.js'
import { spawnThread } from '../world/threads.js'
import { systemClock } from '../world/time/clock.js'
import type { World } from '../world/world.js'
import { recordNamesOf, reportAddressOf } from './published-names.js'
import { upgradeSteps, type ReportUpgrade } from './upgrade/upgrade.js'

export interface Appliance extends AsyncDisposable {
  /** As loaded at start. */
  readonly config: Config
  /** As last reloaded; used for keys that can change while running (`config/reload.ts`). */
  readonly live: LiveConfig
  readonly world: World
  readonly database: Database
  readonly newId: NewId
  readonly domains: DomainParts
  /** Encrypts secrets stored in the database. */
  readonly box: SecretBox
  /** Envelope sender for a message and its recipient. */
  readonly returnPath: (messageId: string, recipient: string) => string
  /** All keys ever used, newest first: bounces of mail sent before a rotation still arrive. */
  readonly returnPathKeys: readonly ReturnPathKey[]
  /** Keys of links in mail (`mail/links/`), newest first: links are followed years later. */
  readonly linkSecrets: readonly TokenKey[]
}

export interface LiveConfig {
  current: Config
}

/** The data folder is not set up; the message says how to do it. */
export class NotInitialisedError extends Error {
  override readonly name = 'NotInitialisedError'
}

interface MayOpen {
  /** Creates the data folder and database, for `init`; otherwise they must exist. */
  readonly mayCreate?: boolean
  /** Migrates an older schema; otherwise it is rejected. */
  readonly mayMigrate?: boolean
}

export interface OpenRequest extends MayOpen {
  readonly config: Config
  readonly world: World
  /** Opens it for a server, with threads for checkpoints and slow reads. */
  readonly isServing?: boolean
  /** For metrics. */
  readonly onCommitted?: OnCommitted
  /** Follows an upgrade, which then copies the database first. */
  readonly onUpgrade?: ReportUpgrade
}

/** Provides segment conditions with campaign and purchase history. */
provideHistory({ campaigns: campaignHistory, purchases: purchaseHistory })

export async function openAppliance(request: OpenRequest): Promise<Appliance> {
  const { config, world, mayCreate = false, mayMigrate = mayCreate } = request
  const live: LiveConfig = { current: config }
  if (!mayCreate) requireInitialised(config)
  const database = await openDatabase(live, { ...request, mayCreate, mayMigrate })
  try {
    const appliance = await assemble(live, world, database, mayMigrate)
    if (request.isServing) await recordNamesOf(config, database, world.clock.now())
    return appliance
  } catch (error) {
    await database[Symbol.asyncDispose]()
    throw error
  }
}

async function openDatabase(live: LiveConfig, request: Required<MayOpen> & OpenRequest): Promise<Database> {
  const { config, world, mayCreate, mayMigrate, isServing = false, onCommitted, onUpgrade } = request
  const { databaseFile: file, postgres } = config
  const steps = onUpgrade && upgradeSteps({ config, world, report: onUpgrade })
  if (postgres) {
    makeDataFolder(config)
    return openPostgres({
      ...world,
      ...postgres,
      mayCreate,
      mayMigrate,
      upgradeSteps: steps,
      isServing,
      onCommitted,
    })
  }
  if (file === undefined) throw new Error('the configuration names no database')
  if (mayCreate) mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  return openSqlite({
    file,
    clock: world.clock,
    mayMigrate,
    upgradeSteps: steps,
    onCommitted,
    ...(isServing ? whileServing(live, world) : {}),
  })
}

/** With PostgreSQL it holds what belongs to this machine only, e.g. the control socket, and any node makes its own. */
export function makeDataFolder({ postgres, dataDir }: Config): void {
  if (postgres) mkdirSync(dataDir, { recursive: true, mode: 0o700 })
}

function whileServing(live: LiveConfig, { disk, log }: World) {
  const threads = { spawn: spawnThread, log }
  return {
    checkpoints: threads,
    // In real time, which is what a statement takes.
    slowReads: { ...threads, clock: systemClock },
    watch: {
      disk,
      log,
      get reserve() {
        return live.current.limits.diskReserveBytes
      },
    },
  }
}

/** With PostgreSQL, opening the database tells. @throws NotInitialisedError */
export function requireInitialised(config: Config): void {
  const { databaseFile: file } = config
  if (file === undefined) return
  const size = statSync(file, { throwIfNoEntry: false })?.size
  if (size === undefined)
    throw new NotInitialisedError(`there is no database at ${file}; run \`postroad init\` first`)
  // Left by an interrupted `init`, or truncated.
  if (size === 0)
    throw new NotInitialisedError(
      `the database at ${file} is empty; restore a backup, or run \`postroad init\` to start over`,
    )
}

/** @param mayChange whether to seal secrets and renew retired keys; false for a command beside the server */
async function assemble(
  live: LiveConfig,
  world: World,
  database: Database,
  mayChange: boolean,
): Promise<Appliance> {
  const { current: config } = live
  const { clock, random } = world
  const newId = orderedIds(
    () => clock.now(),
    count => random.bytes(count),
  )
  const box = await openSecretBox({
    database,
    random,
    source: config.secrets.key,
    maySeal: mayChange,
    sealOthers: async (db, seal) => {
      await sealKeys(db, seal)
      await sealWebhookSecrets(db, seal)
      await sealTotpSecrets(db, seal)
      await sealAcmeKeys(db, seal)
    },
  })
  const domains: DomainParts = {
    database,
    clock,
    random,
    newId,
    freshResolver: () => openResolver(config, world),
    dkimZone: config.dns.dkimZone,
    reportAddress: reportAddressOf(config),
    seal: box,
    ownNames: {
      hosts: [config.hostname, config.mta.returnPathDomain].map(name => name.toLowerCase()),
      shared: config.mta.sharedAddress && addressDomain(config.mta.sharedAddress).toLowerCase(),
    },
  }
  // First: it shows whether the key that seals everything else is right.
  const returnPathKeys = await ensureSecret(database, 'return_path', random.bytes(32), clock.now(), box)
  const [key] = returnPathKeys
  if (!key) throw new Error('could not create the return path secret')
  const linkSecrets = await ensureSecret(database, 'links', random.bytes(32), clock.now(), box)
  const { sharedAddress, returnPathDomain } = config.mta
  if (sharedAddress !== undefined) await ensureApplianceDomain(domains, addressDomain(sharedAddress))
  if (mayChange) await renewRetiredKeys(domains, clock.now())
  return {
    config,
    live,
    world,
    database,
    newId,
    domains,
    box,
    returnPath: (messageId, recipient) =>
      makeReturnPath({ messageId, recipient, key, domain: returnPathDomain }),
    returnPathKeys,
    linkSecrets,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** @param signal aborts its queries */
export function openResolver(config: Config, world: World, signal?: AbortSignal) {
  return world.openResolver(nameServers(config), config.dns.timeoutMs, signal)
}

/** As `ip:port`; empty for the system's name servers. */
export function nameServers({ dns }: Config): string[] {
  return dns.servers.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`))
}
