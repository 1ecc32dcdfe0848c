/** Admin routes of campaigns: found across workspaces. Everything else is done with the REST API in the workspace. */
import Type from 'typebox'
import { findWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import { adminListRoute } from '../../http/admin-route.js'
import { Id } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import type { Route } from '../../http/route.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import { listCampaignsOfAll } from '../model/all-campaigns-store.js'
import { CampaignSchema, campaignToApi } from './campaign-schema.js'
import { findWaits } from '../sending/find-waits.js'

const OwnedCampaign = Type.Object(
  { ...CampaignSchema.properties, workspace_id: Id() },
  { title: 'OwnedCampaign' },
)

export function campaignAdminRoutes(parts: CampaignParts): Route[] {
  const { reader, slowReader } = parts.send.database
  return [
    adminListRoute({
      method: 'GET',
      path: '/campaigns',
      access: { permission: 'campaigns:read', scope: 'query' },
      operationId: 'listAllCampaigns',
      chapter: 'Campaigns',
      summary: 'List campaigns of workspaces, newest first.',
      description: 'Campaigns of sandboxes are not listed.',
      query: Type.Object(
        {
          ...cursorQuery,
          workspace_id: Type.Optional(Type.String({ maxLength: 64, description: 'Only of this workspace.' })),
          awaits_winner: Type.Optional(
            Type.Boolean({
              description:
                'Only campaigns whose A/B test waits for a person to choose the winner: it is decided by hand, or its best variant’s lead may be chance.',
            }),
          ),
          waits: Type.Optional(
            Type.Boolean({
              description: 'Only campaigns that were seen to wait in the last minute, except paused ones.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      item: OwnedCampaign,
      errors: ['not_found'],
      async handle(
        { workspaceId, query: { awaits_winner: awaitsWinner = false, waits: isWaiting = false } },
        page,
      ) {
        if (workspaceId !== undefined && !(await findWorkspace(reader, workspaceId)))
          throw new AppError('not_found', `no workspace ${workspaceId}`)
        const found = await listCampaignsOfAll(slowReader, { workspaceId, awaitsWinner, isWaiting }, page)
        const waits = await findWaits(parts, found.items)
        return {
          ...found,
          items: found.items.map(one => ({
            ...campaignToApi(one, waits.get(one.seq)),
            workspace_id: one.workspaceId,
          })),
        }
      },
    }),
  ]
}
