/** `postroad automation list|show|runs`: flows, their steps, and who is where in them. */
import type { Command } from 'commander'
import { AUTOMATION_STATUSES, type AutomationStatus } from '../automations/flows/automation.js'
import { listAutomations } from '../automations/flows/automation-store.js'
import { mustFindAutomation } from '../automations/flows/automations.js'
import { automationToApi, headToApi } from '../automations/flows/flow-schema.js'
import { findSteps } from '../automations/flows/step-store.js'
import { RUN_STATUSES, type RunStatus } from '../automations/runs/run.js'
import { shownRuns } from '../automations/runs/shown-runs.js'
import {
  command,
  limited,
  mustFindWorkspace,
  owned,
  printResult,
  table,
  UsageError,
  withAppliance,
  type CliContext,
  type ListOptions,
  type OwnedOptions,
} from './context.js'

export function automationCommands(program: Command, context: CliContext): void {
  const group = program.command('automation').description('steps that contacts go through')
  const inWorkspace = (nameAndArgs: string, description: string) =>
    owned(command(group, nameAndArgs, description), 'whose automations')
  limited(inWorkspace('list', 'automations, newest first'), 100)
    .option('--status <status>', `only those that are ${AUTOMATION_STATUSES.join(', ')}`, automationStatus)
    .action(async (options: OwnedOptions & ListOptions & { readonly status?: AutomationStatus }) => {
      await withAppliance(context, options, async ({ database: { reader } }) => {
        await mustFindWorkspace(reader, options.workspace)
        const { status, limit } = options
        const filter = status === undefined ? {} : { status }
        const { items } = await listAutomations(reader, options.workspace, filter, { limit, offset: 0 })
        const shown = items.map(headToApi)
        printResult(context, options, shown, () =>
          table(
            ['NAME', 'STATUS', 'TRIGGER', 'RUNS', 'UNFINISHED', 'FAILED', 'ID'],
            shown.map(({ name, status, trigger_type: trigger, stats, id }) => [
              ...[name, status, trigger, stats.total, stats.active + stats.paused, stats.failed, id],
            ]),
          ),
        )
      })
    })
  inWorkspace('show <id>', 'one automation, with its steps').action(
    async (id: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database: { reader } }) => {
        const automation = await mustFindAutomation(reader, options.workspace, id)
        const shown = automationToApi(automation, await findSteps(reader, automation.seq))
        context.print(JSON.stringify(shown, null, 2))
      })
    },
  )
  limited(inWorkspace('runs <id>', 'its runs, newest first'), 100)
    .option('--status <status>', `only those that are ${RUN_STATUSES.join(', ')}`, runStatus)
    .action(async (id: string, options: OwnedOptions & ListOptions & { readonly status?: RunStatus }) => {
      await withAppliance(context, options, async ({ database: { reader } }) => {
        const automation = await mustFindAutomation(reader, options.workspace, id)
        const page = { limit: options.limit, offset: 0 }
        const { items } = await shownRuns(reader, automation, options.status, page)
        printResult(context, options, items, () =>
          table(
            ['CONTACT', 'STATUS', 'STARTED', 'NEXT', 'ENDED BY', 'ID'],
            items.map(run => [
              ...[run.contact_email, run.status, run.started_at, run.next_run_at, run.exit_reason, run.id],
            ]),
          ),
        )
      })
    })
}

function automationStatus(text: string): AutomationStatus {
  return oneOf(AUTOMATION_STATUSES, text)
}

function runStatus(text: string): RunStatus {
  return oneOf(RUN_STATUSES, text)
}

/** @throws UsageError */
function oneOf<T extends string>(known: readonly T[], text: string): T {
  const found = known.find(one => one === text)
  if (found === undefined) throw new UsageError(`${text} is none of ${known.join(', ')}`)
  return found
}
