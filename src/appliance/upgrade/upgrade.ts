/**
 * Accompanies migrations: copies the database before, reports progress to the log and `doctor`, and deletes old copies.
 *
 * Used by `serve` and `postroad migrate`; `restore` upgrades a copy of its own without. An upgrade that was killed continues at the next
 * start: each migration is one transaction, and the copy from before the first of them is kept.
 */
import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Kysely } from 'kysely'
import { readSecretKey } from '../../accounts/secret-sealing.js'
import type { Config } from '../../config/config.js'
import { describeError } from '../../core/errors.js'
import { roughSize } from '../../core/units.js'
import { VERSION } from '../../core/version.js'
import { MIGRATION_NOTES } from '../../db/migration-notes.js'
import type { UpgradeSteps } from '../../db/migrate.js'
import { octetsToBackUp } from '../../db/sqlite/backup-file.js'
import type { Tables } from '../../db/tables.js'
import { newestSeq } from '../../events/store.js'
import type { World } from '../../world/world.js'
import { deleteOldCopies, makeUpgradeCopy, upgradeCopyPath, type UpgradeCopy } from './upgrade-copies.js'
import {
  readUpgradeState,
  removeUpgradeState,
  writeUpgradeState,
  type UpgradeState,
} from './upgrade-state.js'

export type UpgradeEvent =
  | { readonly kind: 'started'; readonly from: string; readonly migrations: number }
  /** At most every `REPORTED_MS`. @see UpgradeState.copied */
  | { readonly kind: 'copying'; readonly copied: number }
  | { readonly kind: 'copied'; readonly copy: UpgradeCopy; readonly ms: number }
  /** The copy of an upgrade that was interrupted, which this one continues. */
  | { readonly kind: 'copy_kept'; readonly copy: UpgradeCopy }
  | { readonly kind: 'copy_skipped'; readonly reason: string }
  | { readonly kind: 'copy_not_applicable'; readonly reason: string }
  | { readonly kind: 'copy_deleted'; readonly copy: UpgradeCopy }
  | ({ readonly kind: 'migrating'; readonly does: string } & MigrationPlace)
  | ({ readonly kind: 'migrated'; readonly ms: number } & MigrationPlace)
  | { readonly kind: 'state_not_written'; readonly reason: string }
  | { readonly kind: 'completed'; readonly ms: number }

interface MigrationPlace {
  readonly name: string
  /** From 1. */
  readonly number: number
  readonly of: number
}

export type ReportUpgrade = (event: UpgradeEvent) => void | Promise<void>

export interface UpgradeParts {
  readonly config: Config
  readonly world: Pick<World, 'clock' | 'disk'>
  /** Awaited before a migration, so that what it writes is out. */
  readonly report: ReportUpgrade
}

export const COPY_WITH_POSTGRES =
  'storage.copy_before_upgrade does not apply to a PostgreSQL server: back it up there before an upgrade, e.g. with pg_dump'

const REPORTED_MS = 5_000

/** Follows one upgrade. */
export function upgradeSteps(parts: UpgradeParts): UpgradeSteps {
  const { config, world, report } = parts
  const { clock } = world
  const { dataDir } = config
  const startedAt = clock.monotonic()
  let [beganAt, migrated] = [startedAt, 0]
  let state: UpgradeState | undefined
  const note = (change: Partial<UpgradeState>) => {
    if (!state) return
    state = { ...state, ...change }
    try {
      writeUpgradeState(dataDir, state)
    } catch (error) {
      void report({ kind: 'state_not_written', reason: describeError(error) })
    }
  }
  const placeOf = (name: string) => ({ name, number: migrated + 1, of: state?.total ?? 0 })
  return {
    async begin(db, applied, pending) {
      void report({ kind: 'started', from: applied.at(-1) ?? '', migrations: pending.length })
      const earlier = readUpgradeState(dataDir)
      const current = await stateBefore(db, applied, pending, clock.now())
      state = current
      const copy = keptCopy(earlier, current)
      note({ copy: copy ?? null })
      if (copy === undefined) note({ copy: (await copyBefore(parts, note)) ?? null })
      else void report({ kind: 'copy_kept', copy: { file: copy, octets: statSync(copy).size } })
    },
    async onMigrating(name) {
      beganAt = clock.monotonic()
      note({ migration: name, applied: migrated })
      await report({ kind: 'migrating', ...placeOf(name), does: MIGRATION_NOTES[name]?.does ?? '' })
    },
    onMigrated(name) {
      void report({ kind: 'migrated', ...placeOf(name), ms: Math.round(clock.monotonic() - beganAt) })
      migrated += 1
      note({ applied: migrated })
    },
    end() {
      removeUpgradeState(dataDir)
      void report({ kind: 'completed', ms: Math.round(clock.monotonic() - startedAt) })
    },
  }
}

async function stateBefore(
  db: Kysely<Tables>,
  applied: readonly string[],
  pending: readonly string[],
  now: number,
): Promise<UpgradeState> {
  return {
    version: VERSION,
    startedAt: now,
    from: applied.at(-1) ?? '',
    newestEvent: await newestSeq(db),
    total: pending.length,
    applied: 0,
    migration: null,
    copied: 0,
    copy: null,
  }
}

/**
 * The copy that an interrupted upgrade made, unless the older version ran in between. Another copy would be of a database that is upgraded in
 * part, and a few of them would displace the first.
 */
function keptCopy(earlier: UpgradeState | undefined, now: UpgradeState): string | undefined {
  const copy = earlier?.copy ?? undefined
  if (copy === undefined || !existsSync(copy)) return undefined
  return earlier?.newestEvent === now.newestEvent ? copy : undefined
}

/** @returns path of the copy; undefined if none was made @throws Error if the upgrade may not proceed without one */
async function copyBefore(
  { config, world, report }: UpgradeParts,
  note: (change: Pick<UpgradeState, 'copy'> | Pick<UpgradeState, 'copied'>) => void,
): Promise<string | undefined> {
  const { databaseFile, storage, secrets } = config
  const { clock } = world
  if (databaseFile === undefined) {
    void report({ kind: 'copy_not_applicable', reason: COPY_WITH_POSTGRES })
    return undefined
  }
  if (storage.copyBeforeUpgrade === 'never') return undefined
  const began = clock.monotonic()
  let reportedAt = began
  try {
    const { fault } = await roomForCopy(config, world)
    if (fault !== undefined) throw new Error(fault)
    const target = upgradeCopyPath(databaseFile, clock.now())
    // The file gets this name once it is complete.
    note({ copy: target })
    const copy = await makeUpgradeCopy({
      source: databaseFile,
      target,
      now: clock.now(),
      secretKey: secrets.key && readSecretKey(secrets.key),
      onProgress(copied) {
        if (clock.monotonic() - reportedAt < REPORTED_MS) return
        reportedAt = clock.monotonic()
        note({ copied })
        void report({ kind: 'copying', copied })
      },
    })
    void report({ kind: 'copied', copy, ms: Math.round(clock.monotonic() - began) })
    // At once: an upgrade that fails is tried again and again.
    for (const old of deleteOldCopies(databaseFile)) void report({ kind: 'copy_deleted', copy: old })
    return copy.file
  } catch (error) {
    const reason = describeError(error)
    if (storage.copyBeforeUpgrade === 'always')
      throw new Error(
        `the database was not upgraded, since it could not be copied before: ${reason}; to upgrade without a copy, set storage.copy_before_upgrade to never`,
        { cause: error },
      )
    void report({ kind: 'copy_skipped', reason })
    return undefined
  }
}

export interface CopyRoom {
  /** Size of the copy. */
  readonly octets: number
  readonly free: number
  /** Why there is no room; undefined if there is. */
  readonly fault: string | undefined
}

/** @throws the system's error; Error with PostgreSQL */
export async function roomForCopy(
  { databaseFile, limits }: Pick<Config, 'databaseFile' | 'limits'>,
  { disk }: Pick<World, 'disk'>,
): Promise<CopyRoom> {
  if (databaseFile === undefined) throw new Error(COPY_WITH_POSTGRES)
  const folder = dirname(databaseFile)
  const octets = octetsToBackUp(databaseFile)
  const free = await disk.freeSpace(folder)
  const fault =
    free >= octets + limits.diskReserveBytes
      ? undefined
      : `a copy needs ${roughSize(octets)} beside limits.disk_reserve (${roughSize(limits.diskReserveBytes)}), and ${roughSize(free)} are free on the disk of ${folder}`
  return { octets, free, fault }
}
