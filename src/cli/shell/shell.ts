/** `postroad completion SHELL` and `postroad man`. */
import { Argument, type Command } from 'commander'
import { VERSION } from '../../core/version.js'
import type { CliContext } from '../context.js'
import { describeCommand } from './command-tree.js'
import { completionScript, SHELLS, type Shell } from './completion.js'
import { manualPage } from './man.js'

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
