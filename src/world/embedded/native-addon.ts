/**
 * Loads the native part of SQLite out of the executable: the system's loader takes libraries from files alone.
 *
 * Called in the executable, in place of the package that finds it beside `better-sqlite3` (`packaging/binary/bindings.cjs`), by the main
 * program and by the threads that open the database. The file has no name, or none any more when it is written, and only this
 * process holds it open: nobody can put another in its place, nothing is left behind by a kill, and there is nothing to check that
 * would not have come out of the executable a moment ago. Fails: throws with the folders that were tried and why none would do.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, unlinkSync, writeSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads'
import { embeddedFile } from './embedded-files.js'

/** Of the value that threads are handed: the path that the main thread has loaded. */
const SHARED = 'postroad.nativeAddon'
/** A file without a name (open(2)): what Node has no name for is the same on x86-64 and arm64. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY
const OWNER_ONLY = 0o600

type LoadLibrary = (module: { exports: unknown }, path: string) => void

/** @param env of the process @returns its exports */
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
 * @param module gets the library's exports
 * @returns the path that other threads of this process load it by
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
      // It stays open: by this path threads find the library that is loaded already.
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

/** What the service manager made for us first; temporary folders may forbid to execute. */
export function candidateFolders(env: Readonly<Record<string, string | undefined>>): string[] {
  // Each of systemd's may name several, with colons between (systemd.exec(5)).
  const named = [env['RUNTIME_DIRECTORY'], tmpdir(), env['XDG_RUNTIME_DIR'], '/dev/shm', '/tmp', '/var/tmp']
  const last = [env['CACHE_DIRECTORY'], env['STATE_DIRECTORY'], homeFolder(), process.cwd()]
  const all = [...named, ...last].flatMap(one => (one === undefined ? [] : (one.split(':')[0] ?? [])))
  return [...new Set(all.filter(one => one.startsWith('/')))]
}

function homeFolder(): string | undefined {
  try {
    return homedir()
  } catch {
    // An account that is in no list of accounts has none.
    return undefined
  }
}

function openUnnamed(folder: string): number {
  try {
    return openSync(folder, O_TMPFILE | constants.O_RDWR, OWNER_ONLY)
  } catch (error) {
    if (!isUnsupported(error)) throw error
  }
  // A file system that knows no files without a name: made where nobody has made it before, and its name taken away at once.
  const file = join(folder, `.postroad-${randomBytes(16).toString('hex')}`)
  const { O_CREAT, O_EXCL, O_RDWR, O_NOFOLLOW } = constants
  const descriptor = openSync(file, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, OWNER_ONLY)
  unlinkSync(file)
  return descriptor
}

/** As kernels and file systems say it that do not know O_TMPFILE. */
function isUnsupported(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EOPNOTSUPP' || code === 'ENOTSUP' || code === 'EISDIR' || code === 'EINVAL'
}

function writeAll(descriptor: number, octets: Uint8Array): void {
  for (let at = 0; at < octets.length;) at += writeSync(descriptor, octets, at)
}
