/** Findings about a configuration that loads (faults, which `serve` refuses, and warnings), and lookups that checks share. Never throws. */
import { readFileSync, type Stats, statSync } from 'node:fs'
import { describeError } from '../core/errors.js'
import { addressKind } from '../world/net/address-kind.js'
import type { HostAndPort } from './schema/values.js'

export interface Finding {
  /** `serve` refuses to start on a `fault`. */
  readonly severity: 'fault' | 'warning'
  /** Dotted key. */
  readonly path: string
  readonly what: string
  /** The remedy, as an instruction to the operator. */
  readonly fix: string
  /** Marks a warning that breaks part of the service, which `doctor` counts as a failure. */
  readonly outage?: true
  /** Line of the key, or of its section if the key is missing; absent if neither is in the file. */
  readonly line?: number
}

export const fault = (path: string, what: string, fix: string): Finding => ({
  severity: 'fault',
  path,
  what,
  fix,
})

export const warning = (path: string, what: string, fix: string): Finding => ({
  severity: 'warning',
  path,
  what,
  fix,
})

/** A warning that `doctor` counts as a failure. */
export const outage = (path: string, what: string, fix: string): Finding => ({
  ...warning(path, what, fix),
  outage: true,
})

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

export function findStat(path: string): Stats | undefined {
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
