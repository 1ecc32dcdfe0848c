/** `postroad automation list|show|runs`: automations, their steps and runs. */
import type { Command } from 'commander'
import { AUTOMATION_STATUSES } from '../../automations/flows/automation.js'
import type { headToApi } from '../../automations/flows/flow-schema.js'
import type { ShownRun } from '../../automations/runs/run-routes.js'
import { RUN_STATUSES } from '../../automations/runs/run.js'
import { withApi } from '../api.js'
import type { CliContext, OwnedOptions } from '../context.js'
import { choice, printsRest, segment, workspaceGroup } from '../options.js'

interface StatusOptions {
  readonly status?: string
}

export function automationCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = workspaceGroup(
    program,
    'automation',
    'automations and their runs',
    'workspace of the automations',
  )
  printsRest<ReturnType<typeof headToApi>, StatusOptions>(
    context,
    choice(inWorkspace('list', 'list automations, newest first'), '--status <status>', AUTOMATION_STATUSES),
    {
      path: () => '/automations',
      query: ({ status }) => ({ status }),
      head: ['NAME', 'STATUS', 'TRIGGER', 'RUNS', 'UNFINISHED', 'FAILED', 'ID'],
      cells: ({ name, status, trigger_type: trigger, stats, id }) => [
        ...[name, status, trigger, stats.total, stats.active + stats.paused, stats.failed, id],
      ],
    },
  )
  inWorkspace('show <id>', 'show an automation with its steps').action(
    async (id: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const automation = await api.inWorkspace(options.workspace).get(`/automations/${segment(id)}`)
        context.print(JSON.stringify(automation, null, 2))
      })
    },
  )
  printsRest<ShownRun, StatusOptions>(
    context,
    choice(
      inWorkspace('runs <id>', 'list runs of an automation, newest first'),
      '--status <status>',
      RUN_STATUSES,
    ),
    {
      path: id => `/automations/${segment(id)}/runs`,
      query: ({ status }) => ({ status }),
      head: ['CONTACT', 'STATUS', 'STARTED', 'NEXT', 'ENDED BY', 'ID'],
      cells: run => [
        ...[run.contact_email, run.status, run.started_at, run.next_run_at],
        ...[run.exit_reason, run.id],
      ],
    },
  )
}
