/** Error output: one line of text, or with `--json` the REST form of an error. */
import { CommanderError } from 'commander'
import { ConfigError } from '../config/faults.js'
import { AppError, describeError } from '../core/errors.js'
import { given } from '../core/given.js'
import { UsageError } from './context.js'

/** 1 failed, 2 usage or invalid configuration. */
export function exitStatus(thrown: unknown): 1 | 2 {
  return thrown instanceof CommanderError || thrown instanceof UsageError || thrown instanceof ConfigError
    ? 2
    : 1
}

/** One line of JSON for standard error. */
export function failureJson(thrown: unknown): string {
  return JSON.stringify({ error: { code: codeOf(thrown), message: messageOf(thrown), ...detailsOf(thrown) } })
}

/** Whether JSON was requested; words after `--` are not options. */
export function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--')
  return (end < 0 ? args : args.slice(0, end)).includes('--json')
}

function codeOf(thrown: unknown): string {
  if (thrown instanceof AppError) return thrown.code
  if (thrown instanceof ConfigError) return 'configuration_error'
  return exitStatus(thrown) === 2 ? 'usage_error' : 'failed'
}

function messageOf(thrown: unknown): string {
  if (!(thrown instanceof CommanderError)) return describeError(thrown)
  // A group without a command, for which help is printed.
  if (thrown.code === 'commander.help') return 'missing command; see --help'
  return thrown.message.replace(/^error: /, '')
}

function detailsOf(thrown: unknown): { path?: string; faults?: readonly string[] } {
  if (thrown instanceof ConfigError) return { faults: thrown.faults }
  return thrown instanceof AppError ? given({ path: thrown.path }) : {}
}
