/**
 * What is wrong with a configuration: all of it at once, one line per fault.
 *
 * Made by the loader; the command line prints it and exits. No fault text holds a secret or a line of the file.
 */

import { lineOfKey } from './key-lines.js'

export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** E.g. `mta.retry.frist: unknown key, did you mean mta.retry.first?` */
  readonly faults: readonly string[]

  /** @param file where the configuration came from @param text what it holds, for the lines of the faults */
  constructor(file: string, faults: readonly string[], text?: string) {
    const told = text === undefined ? faults : faults.map(fault => withLine(text, fault))
    super(`${file}: ${faults.length === 1 ? '1 fault' : `${faults.length} faults`}\n  ${told.join('\n  ')}`)
    this.faults = faults
  }
}

/** What came from the environment names its variable, and stands in no line. */
function withLine(text: string, fault: string): string {
  const key = /^([\w.-]+): /.exec(fault)?.[1]
  const line = key === undefined ? undefined : lineOfKey(text, key)
  return line === undefined ? fault : `line ${line}: ${fault}`
}

/** Characters of a wrong value that are shown. */
const LONGEST_QUOTE = 60

/** A wrong value as a fault shows it: in quotes if text, bounded, control characters escaped. */
export function quote(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined
  const shown = json ?? String(value)
  return shown.length > LONGEST_QUOTE ? `${shown.slice(0, LONGEST_QUOTE)}...` : shown
}
