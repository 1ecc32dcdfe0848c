/**
 * The register of erased addresses: a file in the data folder that is not part of backups.
 *
 * One line per erasure: workspace (`*` for all), SHA-256 of the address, and time. `postroad restore` uses it to erase those people again.
 * Written and synced before anything is deleted.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'

export interface ErasedAddress {
  /** Undefined: all workspaces. */
  readonly workspaceId: string | undefined
  readonly hash: string
}

export function registerFile(dataDir: string): string {
  return join(dataDir, 'erased-addresses')
}

export function hashOf(email: string): string {
  return createHash('sha256').update(email).digest('hex')
}

/** Adds a line unless it exists. @param at ms since epoch UTC */
export function registerErased(
  dataDir: string,
  workspaceId: string | undefined,
  email: string,
  at: number,
): void {
  const hash = hashOf(email)
  if (readErased(dataDir).some(one => one.hash === hash && one.workspaceId === workspaceId)) return
  const file = openSync(registerFile(dataDir), 'a', 0o600)
  try {
    writeSync(file, `${workspaceId ?? '*'} ${hash} ${new Date(at).toISOString()}\n`)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

export function readErased(dataDir: string): readonly ErasedAddress[] {
  const file = registerFile(dataDir)
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap(line => {
      const [workspaceId, hash] = line.split(' ')
      if (!workspaceId || !hash) return []
      return [{ workspaceId: workspaceId === '*' ? undefined : workspaceId, hash }]
    })
}
