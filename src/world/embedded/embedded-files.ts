/**
 * What the one executable (`make binary`) holds besides its program: the threads' programs and the native part of SQLite.
 *
 * Used by `threads.ts` and, in the executable alone, by `native-addon.ts`. Started by Node from files there is nothing of it, and
 * everybody reads files as ever. Fails: throws for a file that the executable was built without, which is a fault of the build.
 */
import { basename } from 'node:path'
import { getAsset, isSea } from 'node:sea'
import { compileFunction } from 'node:vm'

/**
 * The text of a thread's program that is in the executable.
 *
 * @param entry named as if it were a file; its last part is the name it has in the executable
 * @returns undefined where it is a file
 */
export function embeddedProgram(entry: URL): string | undefined {
  return isSea() ? getAsset(basename(entry.pathname), 'utf8') : undefined
}

/** @returns octets of a file in the executable; undefined where this is no such executable */
export function embeddedFile(name: string): Uint8Array | undefined {
  return isSea() ? new Uint8Array(getAsset(name)) : undefined
}

/**
 * Runs a CommonJS module that is in the executable, and was left out of its program.
 *
 * @param require how it reaches Node's own modules
 * @returns its exports
 */
export function requireEmbedded(name: string, require: (id: string) => unknown): unknown {
  const module = { exports: {} as unknown }
  const parameters = ['module', 'exports', 'require']
  const run = compileFunction(getAsset(name, 'utf8'), parameters, { filename: name })
  Reflect.apply(run, undefined, [module, module.exports, require])
  return module.exports
}
