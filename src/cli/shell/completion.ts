/**
 * Completion scripts for bash, zsh and fish. They contain all commands and options, so that pressing Tab starts no process.
 *
 * Generated from the command tree; printed by `postroad completion` and installed by the Debian package. Pure.
 */
import { everyDescribed, type DescribedCommand, type DescribedOption } from './command-tree.js'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export function completionScript(shell: Shell, program: DescribedCommand): string {
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
  return everyDescribed(program)
    .map(one => `    ${quoted(pathOf(one))}) ${then(one)} ;;`)
    .join('\n')
}

function pathOf({ path }: DescribedCommand): string {
  return path.map(word => ` ${word}`).join('')
}

function groupsOf(program: DescribedCommand): string {
  const names = everyDescribed(program).filter(({ path }) => path.length > 0)
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
  const lines = everyDescribed(program).flatMap(one => {
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
  const known = everyDescribed(program)
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
  const names = everyDescribed(program).flatMap(({ options }) => options.filter(isMeant))
  return [...new Set(names.map(({ long }) => long))].sort().join('|')
}

function quoted(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`
}
