/** File and address lookups for configuration checks. Fails: never. */
import { readFileSync, statSync, type Stats } from 'node:fs'
import { describeError } from '../core/errors.js'
import { addressKind } from '../world/net/address-kind.js'
import { fault, type Finding } from './finding.js'
import type { HostAndPort } from './schema/values.js'

/** @param path the key that names the file */
export function readable(
  path: string,
  file: string,
): { readonly text: string } | { readonly finding: Finding } {
  try {
    return { text: readFileSync(file, 'utf8') }
  } catch (error) {
    return {
      finding: fault(
        path,
        `${file} cannot be read: ${describeError(error)}`,
        'name an existing file that the service user can read',
      ),
    }
  }
}

export function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** Whether hosts beyond this machine and its private networks can connect. */
export function isReachable({ host }: HostAndPort): boolean {
  return host === '0.0.0.0' || host === '::' || addressKind(host) === 'public'
}
