/** `postroad apply FILE`: brings workspaces and operators to the state that a file describes. */
import type { Command } from 'commander'
import { describeError } from '../../core/errors.js'
import { withApi } from '../api.js'
import type { CliContext } from '../context.js'
import { apiCommand, confirm, confirmable, type ConfirmOptions } from '../options.js'
import type { PlannedChange } from './change.js'
import { makePlan } from './plan.js'
import { readState } from './state-file.js'

interface ApplyOptions extends ConfirmOptions {
  readonly plan?: boolean
  readonly exitCode?: boolean
  readonly force?: boolean
}

/** Exit status of `--plan --exit-code` if something has to be done. */
const CHANGES_NEEDED = 3

export function applyCommand(program: Command, context: CliContext): void {
  confirmable(
    apiCommand(program, 'apply <file>', 'bring workspaces and operators to the state a file describes')
      .option('--plan', 'print what would be done, and do nothing')
      .option('--exit-code', `with --plan: exit status ${CHANGES_NEEDED} if something would be done`)
      .option('--force', 'prune what others use as well'),
  ).action(async (file: string, options: ApplyOptions) => {
    const state = readState(file)
    await withApi(context, options, async api => {
      const plan = await makePlan(api, state, { force: options.force === true })
      if (options.plan || plan.length === 0) {
        if (options.json) printJson(context, plan, [])
        else context.print(plan.length === 0 ? 'nothing to do' : planText(plan))
        if (plan.length > 0 && options.exitCode) context.fail(CHANGES_NEEDED)
        return
      }
      if (!options.json) context.print(planText(plan))
      await confirm(context, options, `This makes ${plan.length} changes.`)
      const done: PlannedChange[] = []
      for (const change of plan) {
        try {
          await change.apply()
        } catch (error) {
          if (options.json) printJson(context, plan, done)
          throw new Error(
            `${titleOf(change)}: ${inWordsOfApply(describeError(error))}; ${done.length} of ${plan.length} changes were made. ` +
              'Correct the cause and apply the file again',
            { cause: error },
          )
        }
        done.push(change)
      }
      if (options.json) printJson(context, plan, done)
      else context.print(`${done.length} changes made`)
    })
  })
}

/** The API names its own parameter. */
function inWordsOfApply(message: string): string {
  return message.replace('delete it anyway with force=true', 'delete it anyway with --force')
}

function printJson(
  context: CliContext,
  plan: readonly PlannedChange[],
  done: readonly PlannedChange[],
): void {
  const changes = plan.map(change => ({
    action: change.act,
    resource: change.what,
    workspace: change.workspace ?? null,
    name: change.name,
    changes: change.fields,
    applied: done.includes(change),
  }))
  context.print(JSON.stringify({ changes }, null, 2))
}

const SIGNS = { create: '+', change: '~', delete: '-' } as const

function planText(plan: readonly PlannedChange[]): string {
  const count = (act: PlannedChange['act']) => plan.filter(change => change.act === act).length
  return [
    ...plan.flatMap(change => [
      `${SIGNS[change.act]} ${titleOf(change)}`,
      ...Object.entries(change.fields).map(([name, { before, after }]) =>
        change.act === 'create'
          ? `    ${name}: ${shown(after)}`
          : `    ${name}: ${shown(before)} -> ${shown(after)}`,
      ),
    ]),
    '',
    `${count('create')} to create, ${count('change')} to change, ${count('delete')} to delete`,
  ].join('\n')
}

function titleOf({ what, name, workspace }: PlannedChange): string {
  return `${what} ${name}${workspace === undefined ? '' : ` (workspace ${workspace})`}`
}

const MAX_SHOWN = 80

function shown(value: unknown): string {
  const text = JSON.stringify(value)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}... (${text.length} characters)` : text
}
