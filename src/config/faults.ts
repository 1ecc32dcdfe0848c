/**
 * Collects every fault of a configuration in one error, one per line.
 *
 * Thrown by the loader; the command line prints it and exits. Faults never contain secrets or lines of the file.
 */

import { lineOfKey } from './key-lines.js'

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** E.g. `mta.retry.frist: unknown key, did you mean mta.retry.first?` */
  readonly faults: readonly string[]

  /** @param file source of the configuration @param text its contents, to find line numbers */
  constructor(file: string, faults: readonly string[], text?: string) {
    const lines = text === undefined ? faults : faults.map(fault => withLine(text, fault))
    super(`${file}: ${faults.length === 1 ? '1 fault' : `${faults.length} faults`}\n  ${lines.join('\n  ')}`)
    this.faults = faults
  }
}

/** Faults of environment variables name the variable and have no line. */
function withLine(text: string, fault: string): string {
  const key = /^([\w.-]+): /.exec(fault)?.[1]
  const line = key === undefined ? undefined : lineOfKey(text, key)
  return line === undefined ? fault : `line ${line}: ${fault}`
}

/** Characters of a wrong value that are quoted. */
const MAX_QUOTE = 60

/** Quotes a wrong value for a fault: truncated, with control characters escaped. */
export function quote(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined
  const shown = json ?? String(value)
  return shown.length > MAX_QUOTE ? `${shown.slice(0, MAX_QUOTE)}...` : shown
}
