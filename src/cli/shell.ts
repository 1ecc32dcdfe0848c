/** `postroad completion SHELL` and `postroad man`, both generated from what `--help` prints. */
import { Argument, type Command } from 'commander'
import { VERSION } from '../core/version.js'
import type { CliContext } from './context.js'

export function shellCommands(program: Command, context: CliContext): void {
  const print = (text: string) => context.print(text.replace(/\n$/, ''))
  program
    .command('completion')
    .description('print a shell completion script')
    .addArgument(new Argument('<shell>', 'shell to complete in').choices(SHELLS))
    .addHelpText('after', '\nE.g. in ~/.bashrc: source <(postroad completion bash)')
    .action((shell: Shell) => print(completionScript(shell, describeCommand(program))))
  program
    .command('man')
    .description('print the manual page; view it with: postroad man | man -l -')
    .action(() => print(manualPage(describeCommand(program), VERSION)))
}

interface DescribedCommand {
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

interface DescribedOption {
  /** E.g. `-V, --version` or `--limit <n>`. */
  readonly flags: string
  /** E.g. `--limit`. */
  readonly long: string
  readonly takesValue: boolean
  readonly takesFile: boolean
  readonly description: string
}

function describeCommand(command: Command, path: readonly string[] = []): DescribedCommand {
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
function allCommands(one: DescribedCommand): DescribedCommand[] {
  return [one, ...one.commands.flatMap(allCommands)]
}

const SHELLS = ['bash', 'zsh', 'fish'] as const
type Shell = (typeof SHELLS)[number]

function completionScript(shell: Shell, program: DescribedCommand): string {
  switch (shell) {
    case 'bash':
      return bashScript(program)
    case 'zsh':
      return zshScript(program)
    case 'fish':
      return fishScript(program)
  }
}

/** Shell code that determines the command from the words before the cursor. `$at` is its path, with a space before each word. */
function pathCases(program: DescribedCommand, then: (one: DescribedCommand) => string): string {
  return allCommands(program)
    .map(one => `    ${quoted(pathOf(one))}) ${then(one)} ;;`)
    .join('\n')
}

function pathOf({ path }: DescribedCommand): string {
  return path.map(word => ` ${word}`).join('')
}

function groupsOf(program: DescribedCommand): string {
  const names = allCommands(program).filter(({ path }) => path.length > 0)
  return names.map(one => quoted(pathOf(one))).join('|')
}

function bashScript(program: DescribedCommand): string {
  const wordsOf = (one: DescribedCommand) =>
    quoted([...one.commands.map(({ path }) => path.at(-1)), ...one.options.map(({ long }) => long)].join(' '))
  return `# bash completion for postroad
_postroad() {
  local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} at= words= files= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      ${groupsOf(program)}) at="$at $word" ;;
    esac
  done
  COMPREPLY=()
  case $before in
    ${optionNames(program, ({ takesFile }) => takesFile)}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${optionNames(program, ({ takesFile, takesValue }) => takesValue && !takesFile)}) return ;;
  esac
  case $at in
${pathCases(program, one => `words=${wordsOf(one)}${one.takesFile ? ' files=yes' : ''}`)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  if [ -n "$files" ]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _postroad postroad
`
}

function zshScript(program: DescribedCommand): string {
  const described = (name: string, description: string) =>
    quoted(`${name.replace(/:/g, '\\:')}:${description}`)
  const set = (one: DescribedCommand) => {
    const commands = one.commands.map(({ path, description }) => described(path.at(-1) ?? '', description))
    const options = one.options.map(({ long, description }) => described(long, description))
    return `commands=(${commands.join(' ')}) options=(${options.join(' ')})${one.takesFile ? ' files=yes' : ''}`
  }
  return `#compdef postroad
_postroad() {
  local at= word files=
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      (${groupsOf(program)}) at="$at $word" ;;
    esac
  done
  case \${words[CURRENT-1]} in
    (${optionNames(program, ({ takesFile }) => takesFile)}) _files; return ;;
    (${optionNames(program, ({ takesFile, takesValue }) => takesValue && !takesFile)}) return ;;
  esac
  case $at in
${pathCases(program, set).replace(/^ {4}'/gm, "    ('")}
  esac
  if [[ -n $commands ]]; then _describe -t commands command commands; fi
  if [[ -n $files && $PREFIX != -* ]]; then _files; fi
  _describe -t options option options
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _postroad "$@"; else compdef _postroad postroad; fi
`
}

function fishScript(program: DescribedCommand): string {
  const lines = allCommands(program).flatMap(one => {
    const here = `complete -c postroad -n ${quoted(`__postroad_at${pathOf(one)}`)}`
    return [
      ...one.commands.map(
        ({ path, description }) => `${here} -a ${path.at(-1) ?? ''} -d ${quoted(description)}`,
      ),
      ...one.options.map(
        option =>
          `${here} -l ${option.long.replace(/^-+/, '')}${option.takesFile ? ' -r -F' : option.takesValue ? ' -x' : ''} -d ${quoted(option.description)}`,
      ),
      ...(one.takesFile ? [`${here} -F`] : []),
    ]
  })
  const known = allCommands(program)
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => quoted(path.join(' ')))
  return `# fish completion for postroad
function __postroad_at
  set -l at
  for word in (commandline -opc)[2..]
    if contains -- (string join ' ' $at $word) ${known.join(' ')}
      set -a at $word
    end
  end
  test (string join ' ' $at) = (string join ' ' $argv)
end
complete -c postroad -f
${lines.join('\n')}
`
}

/** As a pattern of `case`. */
function optionNames(program: DescribedCommand, isMeant: (option: DescribedOption) => boolean): string {
  const names = allCommands(program).flatMap(({ options }) => options.filter(isMeant))
  return [...new Set(names.map(({ long }) => long))].sort().join('|')
}

function quoted(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`
}

function manualPage(program: DescribedCommand, version: string): string {
  // Groups do nothing themselves and have no options, except for `migrate`.
  const groups = program.commands
    .flatMap(allCommands)
    .filter(({ commands, options }) => commands.length === 0 || options.some(({ long }) => long === '--json'))
  return [
    `.TH POSTROAD 1 "" ${roff(`"Postroad ${version}"`)} "User Commands"`,
    '.nh',
    '.SH NAME',
    `postroad \\- ${roff(program.description)}`,
    '.SH SYNOPSIS',
    '.B postroad',
    roff('COMMAND [--config FILE] [--json] ...'),
    '.SH DESCRIPTION',
    ...paragraph(
      'Postroad is a mail server appliance in a single process: REST API, SMTP submission, durable queue, and DKIM-signed delivery.',
    ),
    ...paragraph(
      'serve runs the server; the unit postroad.service uses it. The other commands work on its data and can be used while it is running. With --json, output has the form of the REST API, and errors are printed to standard error as {"error": {"code", "message"}}. A file named - is standard input.',
    ),
    '.SH COMMANDS',
    ...groups.flatMap(commandLines),
    '.SH EXIT STATUS',
    ...named('0', 'success'),
    ...named('1', 'failure, or a check found a problem'),
    ...named('2', 'invalid command line or configuration'),
    ...named('3', 'something would be done: migrate --dry-run, apply --plan --exit-code'),
    '.SH ENVIRONMENT',
    ...named('POSTROAD_CONFIG', 'the configuration file, if --config is not given'),
    ...named('POSTROAD_SECTION_KEY', 'overrides a configuration key, e.g. POSTROAD_LOG_LEVEL=debug'),
    '.SH FILES',
    ...named(
      '/etc/postroad/postroad.toml',
      'the configuration; "postroad config reference" explains each key',
    ),
    ...named('/var/lib/postroad', 'data (data_dir): mail, queue, contacts, keys'),
    ...named('/var/backups/postroad', 'nightly backups made by postroad-backup.timer'),
    '.SH SEE ALSO',
    roff('systemctl(1), journalctl(1)'),
    '',
  ].join('\n')
}

function commandLines({ path, usage, description, options }: DescribedCommand): string[] {
  return [
    '.TP',
    `.B ${roff(['postroad', ...path].join(' '))} ${roff(usage)}`,
    roff(sentence(description)),
    ...options
      // Options of all commands are described above.
      .filter(({ long }) => !['--help', '--json', '--config'].includes(long))
      .flatMap(option => ['.RS', '.TP', `.B ${roff(option.flags)}`, roff(option.description), '.RE']),
  ]
}

function named(term: string, text: string): string[] {
  return ['.TP', `.B ${roff(term)}`, roff(sentence(text))]
}

function paragraph(text: string): string[] {
  return ['.PP', roff(text)]
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/** Escapes text for roff, including requests at the start of a line, and keeps hyphens copyable. */
function roff(text: string): string {
  return text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/^([.'])/gm, '\\&$1')
    .replace(/\n+/g, '\n.br\n')
}
