/**
 * Copies of the SQLite database from before upgrades: beside it, named by the version that upgraded it and the time, in the format of
 * backups, so that `postroad restore` of either version accepts them.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isoTime } from '../../core/moments.js'
import { VERSION } from '../../core/version.js'
import { makeBackup, PARTIAL, type BackupRequest } from '../../db/sqlite/backup-file.js'

export interface UpgradeCopy {
  /** Path. */
  readonly file: string
  readonly octets: number
}

/** Older ones are deleted. */
const KEPT = 2

const MARK = '.before-upgrade-'
const TIME = /-(\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}-\d{3}Z)$/

export function upgradeCopyPath(databaseFile: string, now: number): string {
  return `${databaseFile}${MARK}${VERSION}-${isoTime(now).replace(/[:.]/g, '-')}`
}

/** Newest first. */
export function listUpgradeCopies(databaseFile: string): UpgradeCopy[] {
  return namesIn(databaseFile)
    .filter(name => TIME.test(name))
    .sort((a, b) => timeIn(b).localeCompare(timeIn(a)))
    .flatMap(name => {
      const file = join(dirname(databaseFile), name)
      const stat = statSync(file, { throwIfNoEntry: false })
      return stat ? [{ file, octets: stat.size }] : []
    })
}

export async function makeUpgradeCopy(request: Omit<BackupRequest, 'version'>): Promise<UpgradeCopy> {
  const { source, target } = request
  // Left by an upgrade that was killed.
  for (const name of namesIn(source))
    if (name.endsWith(PARTIAL)) rmSync(join(dirname(source), name), { force: true })
  await makeBackup({ ...request, version: VERSION, isUnverified: true })
  return { file: target, octets: statSync(target).size }
}

/** @returns the deleted ones @throws the system's error */
export function deleteOldCopies(databaseFile: string): readonly UpgradeCopy[] {
  const old = listUpgradeCopies(databaseFile).slice(KEPT)
  for (const { file } of old) rmSync(file, { force: true })
  return old
}

function namesIn(databaseFile: string): string[] {
  const start = basename(databaseFile) + MARK
  return readdirSync(dirname(databaseFile)).filter(name => name.startsWith(start))
}

function timeIn(name: string): string {
  return TIME.exec(name)?.[1] ?? ''
}
