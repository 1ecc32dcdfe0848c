/** The command line: all commands, and the exit status of each failure (0 success, 1 failure, 2 usage). */
import { Command, CommanderError } from 'commander'
import { describeError } from '../core/errors.js'
import { visibleText } from '../core/names.js'
import { VERSION } from '../core/version.js'
import { applyCommand } from './apply/apply.js'
import { backupCommand, restoreCommand } from './backup.js'
import { bounceCommands } from './mail/bounce.js'
import { campaignCommands } from './tenant/campaign.js'
import { captureCommands, inboundCommands } from './mail/inbound.js'
import { contactsCommands } from './audience/contacts.js'
import { listsCommands, segmentsCommands, tagsCommands } from './audience/lists.js'
import { automationCommands } from './tenant/automation.js'
import { configCommands } from './config.js'
import type { CliContext } from './context.js'
import { doctorCommand } from './doctor.js'
import { dnsCommands, domainCommands } from './tenant/domain.js'
import { asksForJson, exitStatus, failureJson } from './failure.js'
import { eventCommands } from './mail/event.js'
import { initCommand } from './init.js'
import { jobsCommand } from './jobs.js'
import { nodesCommand } from './nodes.js'
import { keyCommands, loginCommands } from './tenant/key.js'
import { operatorCommands } from './tenant/operator.js'
import { messageCommands } from './mail/message.js'
import { compactCommand, migrateCommand } from './migrate.js'
import { queueCommands } from './mail/queue.js'
import { sendCommand } from './mail/send.js'
import { serveCommand } from './serve.js'
import { shellCommands } from './shell.js'
import { activityCommands, eraseCommand } from './tenant/erase.js'
import { suppressCommands } from './tenant/suppress.js'
import { topCommand } from './mail/top.js'
import { webhookCommands } from './tenant/webhook.js'
import { workspaceCommands } from './tenant/workspace.js'

const COMMANDS = [
  serveCommand,
  initCommand,
  applyCommand,
  workspaceCommands,
  keyCommands,
  loginCommands,
  operatorCommands,
  domainCommands,
  dnsCommands,
  queueCommands,
  messageCommands,
  captureCommands,
  inboundCommands,
  suppressCommands,
  eraseCommand,
  activityCommands,
  contactsCommands,
  listsCommands,
  segmentsCommands,
  tagsCommands,
  automationCommands,
  campaignCommands,
  bounceCommands,
  eventCommands,
  webhookCommands,
  topCommand,
  jobsCommand,
  nodesCommand,
  sendCommand,
  backupCommand,
  restoreCommand,
  configCommands,
  doctorCommand,
  migrateCommand,
  shellCommands,
  compactCommand,
]

export interface OuterContext extends Omit<CliContext, 'fail' | 'printData' | 'printRaw'> {
  /** Whether standard output is a terminal. */
  readonly isTerminal?: boolean
}

/** Names, addresses and mail are other people's words, and a terminal obeys control characters in them. */
function showingControls({ isTerminal = false, ask, ...outer }: OuterContext): Omit<CliContext, 'fail'> {
  const print = (text: string) => {
    outer.print(visibleText(text))
  }
  return {
    ...outer,
    print,
    printData: isTerminal ? print : outer.print,
    printRaw: outer.print,
    complain: text => {
      outer.complain(visibleText(text))
    },
    ...(ask ? { ask: question => ask(visibleText(question)) } : {}),
  }
}

/** @returns exit status. Never rejects. */
export async function runCli(args: readonly string[], outer: OuterContext): Promise<number> {
  let status = 0
  const context = showingControls(outer)
  const isJson = asksForJson(args)
  const program = new Command('postroad')
    .description('self-hosted mail server appliance')
    .version(VERSION)
    .exitOverride()
    // `jobs run NAME --json`: an option belongs to the command it follows.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: text => context.print(text.replace(/\n$/, '')),
      writeErr: text => {
        if (!isJson) context.complain(text.replace(/\n$/, ''))
      },
    })
  for (const register of COMMANDS)
    register(program, {
      ...context,
      fail: (failed = 1) => {
        status = failed
      },
    })
  for (const group of everyCommand(program)) group.copyInheritedSettings(program)
  try {
    await program.parseAsync(args, { from: 'user' })
    return status
  } catch (error) {
    const isPrinted = error instanceof CommanderError
    // Requesting help is not an error.
    if (isPrinted && error.exitCode === 0) return 0
    if (isJson) context.complain(failureJson(error))
    else if (!isPrinted) context.complain(`postroad: ${describeError(error)}`)
    return exitStatus(error)
  }
}

function everyCommand(command: Command): Command[] {
  return command.commands.flatMap(sub => [sub, ...everyCommand(sub)])
}
