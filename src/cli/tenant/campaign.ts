/** `postroad campaign list|show|pause|resume|cancel`. */
import type { Command } from 'commander'
import { CAMPAIGN_STATUSES } from '../../campaigns/model/campaign.js'
import type { ShownCampaign } from '../../campaigns/rest/campaign-schema.js'
import { withApi } from '../api.js'
import { printResult, type CliContext, type OwnedOptions } from '../context.js'
import { waitCell } from '../waits.js'
import { choice, printsRest, segment, workspaceGroup } from '../options.js'

const STEERING = [
  ['pause', 'paused', 'pause a campaign and hold its queued mail'],
  ['resume', 'resumed', 'resume a paused campaign and release its mail'],
  ['cancel', 'cancelled', 'cancel a campaign and withdraw its queued mail'],
] as const

export function campaignCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = workspaceGroup(
    program,
    'campaign',
    'campaigns: mail to a list or segment',
    'workspace of the campaigns',
  )
  printsRest<ShownCampaign, { readonly status?: string }>(
    context,
    choice(inWorkspace('list', 'list campaigns, newest first'), '--status <status>', CAMPAIGN_STATUSES),
    {
      path: () => '/campaigns',
      query: ({ status }) => ({ status }),
      head: [
        ...['NAME', 'STATUS', 'RECIPIENTS', 'PENDING', 'QUEUED', 'DONE', 'OPENED', 'CLICKED'],
        ...['WAITS FOR', 'ID'],
      ],
      cells: ({ name, status, total_recipients: recipients, progress, stats, waiting_for: waiting, id }) => {
        const { pending, queued, done } = progress
        const { unique_opens: opened, unique_clicks: clicked } = stats
        return [name, status, recipients, pending, queued, done, opened, clicked, waitCell(waiting), id]
      },
    },
  )
  inWorkspace('show <id>', 'show a campaign with its progress and results').action(
    async (id: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const campaign = await api.inWorkspace(options.workspace).get(`/campaigns/${segment(id)}`)
        context.print(JSON.stringify(campaign, null, 2))
      })
    },
  )
  for (const [act, done, description] of STEERING)
    inWorkspace(`${act} <id>`, description).action(async (id: string, options: OwnedOptions) => {
      await withApi(context, options, async api => {
        const rest = api.inWorkspace(options.workspace)
        const campaign = await rest.send<ShownCampaign>('POST', `/campaigns/${segment(id)}/${act}`)
        printResult(context, options, campaign, () => `${campaign.name}: ${done}`)
      })
    })
}
