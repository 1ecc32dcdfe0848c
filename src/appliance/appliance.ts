/**
 * What the server and the commands share: the open database, identifiers, and the parts that stores and services take.
 *
 * A command beside a running server opens its own, on the same data folder; both only meet in the database.
 */
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { SecretBox } from '../accounts/secret-box.js'
import { openSecretBox } from '../accounts/secret-sealing.js'
import { ensureSecret } from '../accounts/secret-store.js'
import { purchaseHistory } from '../analytics/conversions/purchase-history-store.js'
import { provideHistory } from '../audience/segments/rule-history.js'
import { campaignHistory } from '../campaigns/records/campaign-history-store.js'
import type { Config } from '../config/config.js'
import { orderedIds, type NewId } from '../core/ids.js'
import { SharedWatch } from '../core/ttl-cache.js'
import type { Database } from '../db/database.js'
import type { OnCommitted } from '../db/group-commit.js'
import { openSqlite } from '../db/sqlite/open-sqlite.js'
import { sealKeys } from '../deliverability/dkim/dkim-key-store.js'
import { sealWebhookSecrets } from '../webhooks/subscriptions/secret-seal-store.js'
import type { DomainParts } from '../deliverability/domains/domain-parts.js'
import { ensureApplianceDomain } from '../deliverability/domains/domains.js'
import { renewRetiredKeys } from '../deliverability/dkim/dkim-keys.js'
import { addressDomain } from '../mail/address.js'
import { makeReturnPath, type ReturnPathKey } from '../mail/return-path.js'
import type { TokenKey } from '../mail/signed-token.js'
import { spawnThread } from '../world/threads.js'
import type { World } from '../world/world.js'

export interface Appliance extends AsyncDisposable {
  /** As it was at the start. */
  readonly config: Config
  /** As it was read last: for what takes over changes while it runs (`config/schema/reloaded-keys.ts`). */
  readonly live: LiveConfig
  readonly world: World
  readonly database: Database
  readonly newId: NewId
  readonly domains: DomainParts
  /** Seals secrets that stand in the database. */
  readonly box: SecretBox
  /** What short memories go by; services that change what is remembered say so here. */
  readonly watch: SharedWatch
  /** Envelope sender for a message and its recipient. */
  readonly returnPath: (messageId: string, recipient: string) => string
  /** All that were ever used, the newest first: mail sent before a rotation still comes back. */
  readonly returnPathKeys: readonly ReturnPathKey[]
  /** What links in mail are made and read with (`mail/links/`), newest first: they are followed years later. */
  readonly linkSecrets: readonly TokenKey[]
}

export interface LiveConfig {
  current: Config
}

/** The data folder was not set up yet; the text says how. */
export class NotInitialisedError extends Error {
  override readonly name = 'NotInitialisedError'
}

export interface OpenRequest {
  readonly config: Config
  readonly world: World
  /** `init` makes the data folder and the database; everybody else wants to find them. */
  readonly mayCreate?: boolean
  /** Otherwise an older schema is refused. */
  readonly mayMigrate?: boolean
  /** A server, which writes much. */
  readonly isServing?: boolean
  /** For monitors. */
  readonly onCommitted?: OnCommitted
}

/** @throws NotInitialisedError, SchemaError, SecretKeyError */
/** What rules of segments know of campaigns and purchases. */
provideHistory({ campaigns: campaignHistory, purchases: purchaseHistory })

export async function openAppliance(request: OpenRequest): Promise<Appliance> {
  const { config, world, mayCreate = false, mayMigrate = mayCreate, isServing = false, onCommitted } = request
  const live: LiveConfig = { current: config }
  const { databaseFile: file } = config
  if (mayCreate) mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  else requireInitialised(config)
  const database = await openSqlite({
    file,
    clock: world.clock,
    mayMigrate,
    onCommitted,
    ...(isServing ? whileServing(live, world) : {}),
  })
  try {
    return await assemble(live, world, database, mayMigrate)
  } catch (error) {
    await database[Symbol.asyncDispose]()
    throw error
  }
}

function whileServing(live: LiveConfig, { disk, log }: World) {
  const threads = { spawn: spawnThread, log }
  return {
    checkpoints: threads,
    slowReads: threads,
    watch: {
      disk,
      log,
      get reserve() {
        return live.current.limits.diskReserveBytes
      },
    },
  }
}

/** @throws NotInitialisedError */
export function requireInitialised(config: Config): void {
  const { databaseFile: file } = config
  const size = statSync(file, { throwIfNoEntry: false })?.size
  if (size === undefined)
    throw new NotInitialisedError(`there is no database at ${file}; run \`postroad init\` first`)
  // As an `init` that was broken off leaves it, or whoever cut it short.
  if (size === 0)
    throw new NotInitialisedError(
      `the database at ${file} is empty; restore a backup, or run \`postroad init\` to begin anew`,
    )
}

/** @param mayChange sees to seals and retired keys: who may change the schema, not a command beside the server */
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
    },
  })
  const watch = new SharedWatch(
    () => clock.monotonic(),
    () => database.foreignVersion(),
  )
  const domains: DomainParts = {
    database,
    clock,
    random,
    newId,
    freshResolver: () => openResolver(config, world),
    dkimZone: config.dns.dkimZone,
    reportAddress: `dmarc@${config.hostname}`,
    seal: box,
    onChanged: watch.noteChange,
  }
  // First, for it tells whether everything else is sealed.
  const returnPathKeys = await ensureSecret(database, 'return_path', random.bytes(32), clock.now(), box)
  const [key] = returnPathKeys
  if (!key) throw new Error('the secret of return paths could not be made')
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
    watch,
    returnPath: (messageId, recipient) =>
      makeReturnPath({ messageId, recipient, key, domain: returnPathDomain }),
    returnPathKeys,
    linkSecrets,
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** @param signal ends its questions */
export function openResolver(config: Config, world: World, signal?: AbortSignal) {
  return world.openResolver(nameServers(config), config.dns.timeoutMs, signal)
}

/** As `ip:port`; empty: the system's. */
export function nameServers({ dns }: Config): string[] {
  return dns.servers.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`))
}
