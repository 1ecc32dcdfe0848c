/** `postroad campaign list|show|pause|resume|cancel`. */
import type { Command } from 'commander'
import { CAMPAIGN_STATUSES, type CampaignStatus } from '../../campaigns/records/campaign.js'
import { campaignToApi, type ShownCampaign } from '../../campaigns/records/campaign-schema.js'
import { listCampaigns } from '../../campaigns/records/campaign-store.js'
import { requireCampaign, steerCampaign, type Steering } from '../../campaigns/records/campaigns.js'
import { SHELL } from '../../core/actor.js'
import { printResult, withAppliance, type CliContext, type OwnedOptions } from '../context.js'
import { choice, ownedGroup, printsList } from '../options.js'

const STEERING: readonly (readonly [Steering, string, string])[] = [
  ['pause', 'paused', 'pause a campaign and hold its queued mail'],
  ['resume', 'resumed', 'resume a paused campaign and release its mail'],
  ['cancel', 'cancelled', 'cancel a campaign and withdraw its queued mail'],
]

export function campaignCommands(program: Command, context: CliContext): void {
  const { inWorkspace } = ownedGroup(
    program,
    'campaign',
    'campaigns: mail to a list or segment',
    'workspace of the campaigns',
  )
  printsList<{ readonly status?: CampaignStatus }>(
    context,
    choice(inWorkspace('list', 'list campaigns, newest first'), '--status <status>', CAMPAIGN_STATUSES),
    HEAD,
    async ({ database: { reader } }, { workspaceId, page, options }) => {
      const { items } = await listCampaigns(reader, workspaceId, options.status, page)
      return items.map(campaignToApi).map(shown => ({ shown, cells: rowOf(shown) }))
    },
  )
  inWorkspace('show <id>', 'show a campaign with its progress and results').action(
    async (id: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database: { reader } }) => {
        const campaign = await requireCampaign(reader, options.workspace, id)
        context.print(JSON.stringify(campaignToApi(campaign), null, 2))
      })
    },
  )
  for (const [act, done, description] of STEERING)
    inWorkspace(`${act} <id>`, description).action(async (id: string, options: OwnedOptions) => {
      await withAppliance(context, options, async ({ database, world }) => {
        const campaign = await database.write(tx =>
          steerCampaign(tx, options.workspace, id, act, SHELL, world.clock.now()),
        )
        printResult(context, options, campaignToApi(campaign), () => `${campaign.name}: ${done}`)
      })
    })
}

const HEAD = ['NAME', 'STATUS', 'RECIPIENTS', 'PENDING', 'QUEUED', 'DONE', 'OPENED', 'CLICKED', 'ID']

function rowOf({ name, status, total_recipients: recipients, progress, stats, id }: ShownCampaign) {
  const { pending, queued, done } = progress
  return [name, status, recipients, pending, queued, done, stats.unique_opens, stats.unique_clicks, id]
}
