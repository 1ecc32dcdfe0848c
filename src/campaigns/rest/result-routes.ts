import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { IdOrNull, MomentOrNull, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { cursorQuery, PageQuery } from '../../http/pagination.js'
import { listRoute, type Route } from '../../http/route.js'
import { variantName } from '../model/ab-test.js'
import { VariantId } from './ab-test-schema.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import { countRows, LEFT_OUT_REASONS, RECIPIENT_STATUSES } from '../model/recipient-store.js'
import { CampaignParams } from './campaign-schema.js'
import { requireCampaign } from '../model/campaigns.js'
import { listLinks, MAX_LINKS, listRecipients, type ShownRecipient } from '../results/result-store.js'

const RecipientStatusEnum = Type.Enum([...RECIPIENT_STATUSES], {
  description: 'One of: pending, sent, delivered, opened, clicked, bounced, failed, skipped, cancelled.',
})

const RecipientSchema = Type.Object(
  {
    contact_id: IdOrNull({ description: 'Null if the contact was erased.' }),
    email: TextOrNull(),
    status: RecipientStatusEnum,
    reason: orNull(Type.Enum([...LEFT_OUT_REASONS]), { description: 'Why the recipient was skipped.' }),
    message_id: IdOrNull(),
    variant: orNull(VariantId, { description: 'For recipients in the sample of an A/B test.' }),
    sent_at: MomentOrNull({ description: 'When the email was queued.' }),
    delivered_at: MomentOrNull(),
    opened_at: MomentOrNull(),
    clicked_at: MomentOrNull(),
    bounced_at: MomentOrNull(),
    complained_at: MomentOrNull(),
  },
  { title: 'CampaignRecipient' },
)

const LinkSchema = Type.Object(
  {
    url: TextOrNull({ description: `Null: all links beyond the first ${MAX_LINKS}, counted together.` }),
    clicks: Type.Integer({ description: 'Clicks, excluding bots.' }),
    unique_clicks: Type.Integer({ description: 'Recipients who clicked it.' }),
  },
  { title: 'CampaignLink' },
)

export function resultRoutes({ send: { database } }: CampaignParts): Route[] {
  return [
    listRoute({
      method: 'GET',
      path: '/campaigns/:id/recipients',
      access: 'campaigns:read',
      operationId: 'listCampaignRecipients',
      chapter: 'Campaigns',
      summary: "List a campaign's recipients.",
      description:
        'Ordered by creation of the contact. `sent` means queued. Contacts excluded when the campaign started are not listed. ' +
        'Kept for `retention.campaign_recipients`.',
      params: CampaignParams,
      query: Type.Object(
        { ...cursorQuery, status: Type.Optional(RecipientStatusEnum) },
        { additionalProperties: false },
      ),
      item: RecipientSchema,
      errors: ['not_found'],
      async handle({ principal, params, query: { status } }, page) {
        const campaign = await requireCampaign(database.reader, principal.workspaceId, params.id)
        const all = campaign.recipientsPrunedAt === null ? countRows(campaign) : 0
        const found = await listRecipients(database.slowReader, campaign.seq, all, status, page)
        return { ...found, items: found.items.map(recipientToApi) }
      },
    }),
    listRoute({
      method: 'GET',
      path: '/campaigns/:id/links',
      access: 'campaigns:read',
      operationId: 'listCampaignLinks',
      chapter: 'Campaigns',
      summary: "List a campaign's clicked links.",
      description:
        'Most clicked first. URLs are those clicks led to, including tracking parameters added by the workspace.',
      params: CampaignParams,
      query: PageQuery,
      item: LinkSchema,
      errors: ['not_found'],
      async handle({ principal, params }, page) {
        const { seq } = await requireCampaign(database.reader, principal.workspaceId, params.id)
        const found = await listLinks(database.slowReader, seq, page)
        return {
          ...found,
          items: found.items.map(one => ({
            url: one.url,
            clicks: one.clicks,
            unique_clicks: one.uniqueClicks,
          })),
        }
      },
    }),
  ]
}

function recipientToApi(one: ShownRecipient): Static<typeof RecipientSchema> {
  return {
    contact_id: one.contactId,
    email: one.email,
    status: one.status,
    reason: one.reason,
    message_id: one.messageId,
    variant: one.variant === null ? null : variantName(one.variant),
    sent_at: one.status === 'skipped' ? null : timeOrNull(one.handedAt),
    delivered_at: timeOrNull(one.deliveredAt),
    opened_at: timeOrNull(one.openedAt),
    clicked_at: timeOrNull(one.clickedAt),
    bounced_at: timeOrNull(one.bouncedAt),
    complained_at: timeOrNull(one.complainedAt),
  }
}

function timeOrNull(moment: number | null): string | null {
  return moment === null ? null : isoTime(moment)
}
