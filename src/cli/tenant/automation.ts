/** `postroad automation list|show|runs`: automations, their steps and runs. */
import type { Command } from 'commander'
import { AUTOMATION_STATUSES, type AutomationStatus } from '../../automations/flows/automation.js'
import { listAutomations } from '../../automations/flows/automation-store.js'
import { getAutomation } from '../../automations/flows/automations.js'
import { automationToApi, headToApi } from '../../automations/flows/flow-schema.js'
import { findSteps } from '../../automations/flows/step-store.js'
import { RUN_STATUSES, type RunStatus } from '../../automations/runs/run.js'
import { given } from '../../core/given.js'
import { listShownRuns } from '../../automations/runs/run-routes.js'
import { withAppliance, type CliContext, type OwnedOptions } from '../context.js'
import { choice, ownedGroup, printsList } from '../options.js'

export function automationCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = ownedGroup(
    program,
    'automation',
    'automations and their runs',
    'workspace of the automations',
  )
  printsList<{ readonly status?: AutomationStatus }>(
    context,
    choice(inWorkspace('list', 'list automations, newest first'), '--status <status>', AUTOMATION_STATUSES),
    ['NAME', 'STATUS', 'TRIGGER', 'RUNS', 'UNFINISHED', 'FAILED', 'ID'],
    async ({ database: { reader } }, { workspaceId, page, options: { status } }) => {
      const { items } = await listAutomations(reader, workspaceId, given({ status }), page)
      return items.map(headToApi).map(shown => {
        const { name, status: state, trigger_type: trigger, stats, id } = shown
        const counts = [stats.total, stats.active + stats.paused, stats.failed]
        return { shown, cells: [name, state, trigger, ...counts, id] }
      })
    },
  )
  inWorkspace('show <id>', 'show an automation with its steps').action(
    async (id: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database: { reader } }) => {
        const automation = await getAutomation(reader, options.workspace, id)
        const shown = automationToApi(automation, await findSteps(reader, automation.seq))
        context.print(JSON.stringify(shown, null, 2))
      })
    },
  )
  printsList<{ readonly status?: RunStatus }>(
    context,
    choice(
      inWorkspace('runs <id>', 'list runs of an automation, newest first'),
      '--status <status>',
      RUN_STATUSES,
    ),
    ['CONTACT', 'STATUS', 'STARTED', 'NEXT', 'ENDED BY', 'ID'],
    async ({ database: { reader } }, { workspaceId, page, named, options }) => {
      const automation = await getAutomation(reader, workspaceId, named)
      const { items } = await listShownRuns(reader, automation, options.status, page)
      return items.map(shown => ({
        shown,
        cells: [
          ...[shown.contact_email, shown.status, shown.started_at, shown.next_run_at],
          ...[shown.exit_reason, shown.id],
        ],
      }))
    },
  )
}
