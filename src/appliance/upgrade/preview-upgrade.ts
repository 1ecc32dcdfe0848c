/** Previews an upgrade for `postroad migrate --dry-run`: reads the database of any older version, and changes nothing. */
import { statSync } from 'node:fs'
import type { Config } from '../../config/config.js'
import { readPostgres } from '../../db/postgres/open-postgres.js'
import { readSqlite } from '../../db/sqlite/read-sqlite.js'
import { isOlder, planUpgrade, type UpgradePlan } from '../../db/upgrade-plan.js'
import type { World } from '../../world/world.js'
import { COPY_WITH_POSTGRES, roomForCopy } from './upgrade.js'

export interface UpgradePreview extends UpgradePlan {
  /** Of all migrations, without the copy. */
  readonly estimateMs: number
  readonly copy: PlannedCopy
  /** Octets; what is free is not known of a PostgreSQL server. */
  readonly room: { readonly needed: number; readonly free: number | undefined }
}

interface PlannedCopy {
  readonly setting: Config['storage']['copyBeforeUpgrade']
  readonly willBeMade: boolean
  /** Size of the database; 0 with PostgreSQL. */
  readonly octets: number
  /** Rough. */
  readonly estimateMs: number
  /** Why none will be made. */
  readonly reason: string | undefined
}

/** Whether the database has the schema of an older version; false if there is none yet. @throws SchemaError, Error */
export async function needsUpgrade({ databaseFile, postgres }: Config): Promise<boolean> {
  if (postgres) return readPostgres(postgres.url, db => isOlder(db, 'postgres'))
  const size = databaseFile === undefined ? 0 : (statSync(databaseFile, { throwIfNoEntry: false })?.size ?? 0)
  return databaseFile !== undefined && size > 0 && readSqlite(databaseFile, db => isOlder(db, 'sqlite'))
}

/** 100 MB a second, written, read again for the checksum, and synced. */
const COPIED_OCTETS_PER_MS = 100_000

/** @throws SchemaError for a database that this program cannot upgrade */
export async function previewUpgrade(config: Config, world: Pick<World, 'disk'>): Promise<UpgradePreview> {
  const { databaseFile, postgres, storage } = config
  const setting = storage.copyBeforeUpgrade
  if (postgres) {
    const plan = await readPostgres(postgres.url, db => planUpgrade(db, 'postgres'))
    const copy = { setting, willBeMade: false, octets: 0, estimateMs: 0, reason: COPY_WITH_POSTGRES }
    return { ...plan, ...totals(plan), copy, room: { needed: octetsOf(plan), free: undefined } }
  }
  if (databaseFile === undefined) throw new Error('the configuration names no database')
  const plan = await readSqlite(databaseFile, db => planUpgrade(db, 'sqlite'))
  const { octets, free, fault } = await roomForCopy(config, world)
  const reason = setting === 'never' ? 'storage.copy_before_upgrade is never' : faultText(setting, fault)
  const isPending = plan.pending.length > 0
  const willBeMade = isPending && reason === undefined
  const estimateMs = willBeMade ? Math.ceil(octets / COPIED_OCTETS_PER_MS) : 0
  const copy = { setting, willBeMade, octets, estimateMs, reason }
  const needed = octetsOf(plan) + (setting === 'never' || !isPending ? 0 : octets)
  return { ...plan, ...totals(plan), copy, room: { needed, free } }
}

function faultText(setting: PlannedCopy['setting'], fault: string | undefined): string | undefined {
  return fault !== undefined && setting === 'always' ? `${fault}; the upgrade would be refused` : fault
}

function totals({ pending }: UpgradePlan) {
  return { estimateMs: pending.reduce((sum, { estimateMs }) => sum + estimateMs, 0) }
}

function octetsOf({ pending }: UpgradePlan): number {
  return pending.reduce((sum, { octets }) => sum + octets, 0)
}
