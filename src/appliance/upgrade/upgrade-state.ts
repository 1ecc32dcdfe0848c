/**
 * How far an upgrade of the database is, in `upgrade.json` of the data folder: for `doctor`, and for the next start if it was interrupted.
 *
 * The file exists only during an upgrade. A missing or unreadable file reads as undefined.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'

const STATE = Type.Object({
  /** Version of the program that upgrades. */
  version: Type.String(),
  /** Ms since epoch UTC. */
  startedAt: Type.Number(),
  /** The newest migration before the upgrade. */
  from: Type.String(),
  /** The newest event when the copy was made: it is current until there are others. */
  newestEvent: Type.Number(),
  total: Type.Number(),
  applied: Type.Number(),
  /** The one being applied; null while the copy is made. */
  migration: Type.Union([Type.String(), Type.Null()]),
  /** Copied share of the database, 0 to 1. */
  copied: Type.Number(),
  /** Path of the copy from before; null if there is none. */
  copy: Type.Union([Type.String(), Type.Null()]),
})

export type UpgradeState = Static<typeof STATE>

const fileIn = (dataDir: string) => join(dataDir, 'upgrade.json')

export function readUpgradeState(dataDir: string): UpgradeState | undefined {
  try {
    const state: unknown = JSON.parse(readFileSync(fileIn(dataDir), 'utf8'))
    return Value.Check(STATE, state) ? state : undefined
  } catch {
    return undefined
  }
}

export function writeUpgradeState(dataDir: string, state: UpgradeState): void {
  const file = fileIn(dataDir)
  writeFileSync(`${file}.new`, JSON.stringify(state), { mode: 0o600 })
  renameSync(`${file}.new`, file)
}

export function removeUpgradeState(dataDir: string): void {
  rmSync(fileIn(dataDir), { force: true })
}
