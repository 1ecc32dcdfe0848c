/**
 * Loads SQLite's native library out of the executable. The system loader needs a file, so it is written to an unnamed one.
 *
 * Used only in the executable, instead of the lookup of `better-sqlite3` (`packaging/binary/bindings.cjs`). The file has no name, or its
 * name is removed before it is written, so no other process can replace it and nothing is left behind after a kill.
 * Throws with the folders tried and why each failed.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, unlinkSync, writeSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { embeddedFile } from './embedded-files.js'

/** Key under which threads receive the path the main thread loaded. */
const SHARED = 'postroad.nativeAddon'
/** open(2): creates an unnamed file. Missing from Node's constants; the same on x86-64 and arm64. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY
const OWNER_ONLY = 0o600

type LoadLibrary = (module: { exports: unknown }, path: string) => void

/** @returns the library's exports */
export function loadNativeAddon(name: string, env: Readonly<Record<string, string | undefined>>): unknown {
  const known: unknown = getEnvironmentData(SHARED)
  const module = { exports: {} as unknown }
  if (typeof known === 'string') {
    process.dlopen(module, known)
    return module.exports
  }
  const octets = embeddedFile(name)
  if (octets === undefined) throw new Error(`${name} is in no executable`)
  setEnvironmentData(SHARED, loadFromAnyOf(candidateFolders(env), octets, module))
  return module.exports
}

/**
 * @param module receives the exports
 * @returns the path from which other threads load the library
 */
export function loadFromAnyOf(
  folders: readonly string[],
  octets: Uint8Array,
  module: { exports: unknown },
  load: LoadLibrary = (into, path) => process.dlopen(into, path),
): string {
  const faults: string[] = []
  for (const folder of folders) {
    let descriptor: number | undefined
    try {
      descriptor = openUnnamed(folder)
      writeAll(descriptor, octets)
      const path = `/proc/self/fd/${descriptor}`
      load(module, path)
      // Kept open: threads load the library through this path.
      return path
    } catch (error) {
      if (descriptor !== undefined) closeSync(descriptor)
      faults.push(`${folder}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  throw new Error(
    `the native part of SQLite needs a folder that can be written to and is not mounted noexec; name one in $TMPDIR. Tried: ${faults.join('; ')}`,
  )
}

/** systemd's folders first: temporary folders may be mounted noexec. */
export function candidateFolders(env: Readonly<Record<string, string | undefined>>): string[] {
  // Colon-separated lists (systemd.exec(5)).
  const named = [env['RUNTIME_DIRECTORY'], tmpdir(), env['XDG_RUNTIME_DIR'], '/dev/shm', '/tmp', '/var/tmp']
  const last = [env['CACHE_DIRECTORY'], env['STATE_DIRECTORY'], homeFolder(), process.cwd()]
  const all = [...named, ...last].flatMap(one => (one === undefined ? [] : (one.split(':')[0] ?? [])))
  return [...new Set(all.filter(one => one.startsWith('/')))]
}

function homeFolder(): string | undefined {
  try {
    return homedir()
  } catch {
    // The user may have no passwd entry.
    return undefined
  }
}

function openUnnamed(folder: string): number {
  try {
    return openSync(folder, O_TMPFILE | constants.O_RDWR, OWNER_ONLY)
  } catch (error) {
    if (!isUnsupported(error)) throw error
  }
  // The file system lacks O_TMPFILE: create a file exclusively and unlink it.
  const file = join(folder, `.postroad-${randomBytes(16).toString('hex')}`)
  const { O_CREAT, O_EXCL, O_RDWR, O_NOFOLLOW } = constants
  const descriptor = openSync(file, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, OWNER_ONLY)
  unlinkSync(file)
  return descriptor
}

/** Errors of kernels and file systems without O_TMPFILE. */
function isUnsupported(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EOPNOTSUPP' || code === 'ENOTSUP' || code === 'EISDIR' || code === 'EINVAL'
}

function writeAll(descriptor: number, octets: Uint8Array): void {
  for (let at = 0; at < octets.length;) at += writeSync(descriptor, octets, at)
}
