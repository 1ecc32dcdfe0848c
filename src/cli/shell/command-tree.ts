/** The commands as a plain tree for completion and the manual page, read from what `--help` prints. */
import type { Command } from 'commander'

export interface DescribedCommand {
  /** Words after the program's name, e.g. `['queue', 'hold']`; empty for the program itself. */
  readonly path: readonly string[]
  /** As in a usage line, e.g. `[options] <id>`. */
  readonly usage: string
  readonly description: string
  readonly options: readonly DescribedOption[]
  readonly commands: readonly DescribedCommand[]
  /** Whether its last argument is a file. */
  readonly takesFile: boolean
}

export interface DescribedOption {
  /** E.g. `-V, --version` or `--limit <n>`. */
  readonly flags: string
  /** E.g. `--limit`. */
  readonly long: string
  readonly takesValue: boolean
  readonly takesFile: boolean
  readonly description: string
}

export function describeCommand(command: Command, path: readonly string[] = []): DescribedCommand {
  const help = command.createHelp()
  return {
    path,
    usage: command.usage(),
    description: command.description(),
    options: help.visibleOptions(command).map(({ flags, long, short, required, optional, description }) => ({
      flags,
      long: long ?? short ?? flags,
      takesValue: required || optional,
      takesFile: /<(file|folder)>/.test(flags),
      description,
    })),
    commands: help
      .visibleCommands(command)
      .filter(one => one.name() !== 'help')
      .map(one => describeCommand(one, [...path, one.name()])),
    takesFile: command.registeredArguments.some(one => /^(file|folder)s?$/.test(one.name())),
  }
}

/** A command and all its descendants, itself first. */
export function everyDescribed(one: DescribedCommand): DescribedCommand[] {
  return [one, ...one.commands.flatMap(everyDescribed)]
}
