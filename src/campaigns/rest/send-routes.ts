import Type from 'typebox'
import { MomentOrNull } from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { EXAMPLE_ID, SEND_EXAMPLE_ANSWER, SendResult } from '../../msa/rest/send-schema.js'
import { VariantId } from './ab-test-schema.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import { SENT_EXAMPLE } from './campaign-example.js'
import { CampaignParams, CampaignSchema, ExcludedSchema, excludedToApi, tagged } from './campaign-schema.js'
import { requireCampaign, steerCampaign, type Steering } from '../model/campaigns.js'
import { findWait } from '../sending/find-waits.js'
import { readSendingTime, SendingTimeOrNull } from './sending-time.js'
import { sendCampaign, sendTest } from '../sending/send-campaign.js'
import { countAudience, findCampaignAudience } from '../model/campaign-audience.js'

const MAX_TEST_ADDRESSES = 10

const SendCampaignBody = Type.Object(
  {
    send_at: Type.Optional(
      Type.String({
        maxLength: 64,
        shownFormat: 'date-time',
        description: 'ISO 8601, within the next 72 hours. Default: now.',
      }),
    ),
  },
  { additionalProperties: false, title: 'CampaignSendRequest' },
)

const CampaignSent = Type.Object(
  {
    total_recipients: Type.Integer(),
    batches_queued: Type.Integer({ description: 'Of up to 1,000 recipients each.' }),
    excluded: ExcludedSchema,
    status: Type.Enum(['sending', 'scheduled']),
    scheduled_at: MomentOrNull(),
  },
  { title: 'CampaignSendResult' },
)

const Mailbox = Type.String({ minLength: 1, maxLength: MAX_MAILBOX_LENGTH })
const CampaignTestBody = Type.Object(
  {
    to: Type.Union([Mailbox, Type.Array(Type.String(), { minItems: 1, maxItems: MAX_TEST_ADDRESSES })], {
      description: `One address, or up to ${MAX_TEST_ADDRESSES}.`,
    }),
    variant: Type.Optional(VariantId),
  },
  { additionalProperties: false, title: 'CampaignTestRequest' },
)

const EXCLUDED = { unsubscribed: 3, bounced: 1, suppressed: 1 }

/** @param wake tells the runner that a campaign has work */
export function sendRoutes(parts: CampaignParts, wake: () => void): Route[] {
  return [
    audienceRoute(parts),
    sendRoute(parts, wake),
    testRoute(parts),
    steerRoute(parts, wake, {
      act: 'pause',
      operationId: 'pauseCampaign',
      summary: 'Pause a campaign.',
      description:
        'No more emails are queued, and queued ones are held: delivery stops within two seconds, except for emails already transmitted and ' +
        'awaiting the reply. `stats.held` counts held emails. Held emails do not expire. Holding or releasing mail in the queue does not affect ' +
        'a pause.',
    }),
    steerRoute(parts, wake, {
      act: 'resume',
      operationId: 'resumeCampaign',
      summary: 'Resume a campaign.',
      description:
        'Releases held emails and continues with the remaining recipients. Nobody is skipped or mailed twice. A campaign paused before its ' +
        'scheduled time is scheduled again.',
    }),
    steerRoute(parts, wake, {
      act: 'cancel',
      operationId: 'cancelCampaign',
      summary: 'Cancel a campaign.',
      description:
        'Queued emails are held at once and then cancelled. An email already transmitted keeps its result and is not retried. ' +
        'Cancelled emails get status failed; their recipients, and all recipients not yet mailed, get status cancelled. A cancelled campaign ' +
        'cannot be resumed.',
    }),
  ]
}

function audienceRoute(parts: CampaignParts): Route {
  const { database, clock } = parts.send
  return route({
    method: 'GET',
    path: '/campaigns/:id/audience',
    access: 'campaigns:read',
    operationId: 'getCampaignAudience',
    chapter: 'Campaigns',
    summary: "Preview a campaign's audience.",
    description:
      'Counted now if the campaign has not started (503 if that takes more than a few seconds); afterwards as of its start.',
    params: CampaignParams,
    response: Type.Object(
      {
        total: Type.Integer(),
        mailable: Type.Integer({ description: 'Subscribed, not bounced, not suppressed.' }),
        ...ExcludedSchema.properties,
        sending_time: SendingTimeOrNull,
      },
      { title: 'CampaignAudience' },
    ),
    exampleAnswer: {
      total: 105,
      mailable: 100,
      ...EXCLUDED,
      sending_time: {
        duration_seconds: 0,
        limited_by: null,
        limit: null,
        detail: 'Less than a minute.',
      },
    },
    errors: ['not_found'],
    async handle({ principal: { workspaceId }, params }) {
      const campaign = await requireCampaign(database.reader, workspaceId, params.id)
      const counted =
        campaign.who === null && campaign.fixedAt === null
          ? await countAudience(
              database,
              clock,
              workspaceId,
              await findCampaignAudience(database.reader, campaign),
            )
          : { ...excludedToApi(campaign), mailable: campaign.recipients }
      const { mailable, unsubscribed, bounced, suppressed } = counted
      const total = mailable + unsubscribed + bounced + suppressed
      const sending_time = await readSendingTime(parts, campaign, mailable)
      return { total, mailable, unsubscribed, bounced, suppressed, sending_time }
    },
  })
}

function sendRoute(parts: CampaignParts, wake: () => void): Route {
  return route({
    method: 'POST',
    path: '/campaigns/:id/send/api',
    access: 'campaigns:send',
    operationId: 'sendCampaign',
    chapter: 'Campaigns',
    summary: 'Send or schedule a campaign.',
    description:
      'The audience is evaluated once, when the campaign starts: now, or at `send_at`. Contacts who are created or join later are not mailed. ' +
      'Until a scheduled campaign starts, `total_recipients` and `excluded` are estimates. Recipient rows are created right after the start; ' +
      'until all exist, totals may still change. Contacts who have unsubscribed, bounced, been suppressed or been deleted by the time their email is ' +
      'queued are skipped. The template, sender and workspace settings are used as they are now.\n\n' +
      'Emails are queued as fast as they are delivered, within rate_per_hour and send_window; at most 10,000 wait for their first attempt. ' +
      'If the workspace reaches its hourly or daily limit, the campaign waits for the next hour or day. With an A/B test, a ' +
      'sample gets the variants first, and the others the winner once it is decided (`GET /campaigns/{id}/ab-test`). The campaign is completed once every email is ' +
      'delivered or has failed. Campaign emails are marketing: each has an unsubscribe link, and unsubscribed contacts get none.\n\n' +
      'With a sandbox key the campaign runs to completion without sending anything; addresses at `simulator.test` simulate an outcome. An A/B test is decided at once.',
    params: CampaignParams,
    body: SendCampaignBody,
    isBodyOptional: true,
    requiresIdempotencyKey: true,
    keepsAnswer: true,
    status: 202,
    response: CampaignSent,
    example: {},
    exampleAnswer: {
      total_recipients: 100,
      batches_queued: 1,
      excluded: EXCLUDED,
      status: 'sending',
      scheduled_at: null,
    },
    errors: [
      'not_found',
      'conflict',
      'missing_from_email',
      'template_not_found',
      'domain_invalid',
      'invalid_schedule',
    ],
    async handle({ principal, params, body, claim }) {
      const answer = await sendCampaign(parts, principal, params.id, body.send_at, claim)
      wake()
      return answer
    },
  })
}

function testRoute(parts: CampaignParts): Route {
  return route({
    method: 'POST',
    path: '/campaigns/:id/test',
    access: 'campaigns:send',
    operationId: 'sendCampaignTest',
    chapter: 'Campaigns',
    summary: 'Send a test email.',
    description:
      'Uses the template as it is now; merge tags are filled in from the contact with that address, if there is one. Test emails count ' +
      'towards the sending limits but not in the campaign’s statistics, and unsubscribed contacts are skipped. `variant`: of an A/B test; ' +
      'default A.',
    params: CampaignParams,
    body: CampaignTestBody,
    example: { to: 'ann@example.net' },
    response: SendResult,
    exampleAnswer: {
      ...SEND_EXAMPLE_ANSWER,
      results: [{ to: 'ann@example.net', message_id: EXAMPLE_ID, success: true }],
    },
    errors: ['not_found', 'missing_from_email', 'template_not_found', 'domain_invalid', 'limit_reached'],
    handle: ({ principal, params, body }) => sendTest(parts, principal, params.id, body.to, body.variant),
  })
}

interface SteerRoute {
  readonly act: Steering
  readonly operationId: string
  readonly summary: string
  readonly description: string
}

function steerRoute(parts: CampaignParts, wake: () => void, { act, ...described }: SteerRoute): Route {
  const { send, onHolds } = parts
  return route({
    method: 'POST',
    path: `/campaigns/:id/${act}`,
    access: 'campaigns:send',
    chapter: 'Campaigns',
    ...described,
    hasEtag: true,
    params: CampaignParams,
    response: CampaignSchema,
    exampleAnswer: { ...SENT_EXAMPLE, status: STEERED[act], completed_at: null },
    errors: ['not_found', 'conflict'],
    async handle({ principal, params }) {
      const campaign = await send.database.write(tx =>
        steerCampaign(tx, principal.workspaceId, params.id, act, principal.actor, send.clock.now()),
      )
      onHolds()
      wake()
      return tagged(campaign, await findWait(parts, campaign))
    },
  })
}

const STEERED = { pause: 'paused', resume: 'sending', cancel: 'cancelled' } as const
