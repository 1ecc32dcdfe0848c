/**
 * Files inside the single executable (`make binary`): thread programs and SQLite's native library.
 *
 * When started by Node from files, nothing is embedded and files are read from disk. Throws for a file missing from the executable,
 * which is a build error.
 */
import { basename } from 'node:path'
import { getAsset, isSea } from 'node:sea'
import { compileFunction } from 'node:vm'

/**
 * The source of a thread's program in the executable.
 *
 * @param entry its last path segment is the name in the executable
 * @returns undefined if it is a file on disk
 */
export function embeddedProgram(entry: URL): string | undefined {
  return isSea() ? getAsset(basename(entry.pathname), 'utf8') : undefined
}

/** @returns undefined if not running as a single executable */
export function embeddedFile(name: string): Uint8Array | undefined {
  return isSea() ? new Uint8Array(getAsset(name)) : undefined
}

/**
 * Loads an embedded CommonJS module.
 *
 * @param require for Node's built-in modules
 */
export function requireEmbedded(name: string, require: (id: string) => unknown): unknown {
  const module = { exports: {} as unknown }
  const parameters = ['module', 'exports', 'require']
  const run = compileFunction(getAsset(name, 'utf8'), parameters, { filename: name })
  Reflect.apply(run, undefined, [module, module.exports, require])
  return module.exports
}
