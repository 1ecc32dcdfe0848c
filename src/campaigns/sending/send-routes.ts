/** Routes that send a campaign, try it out, and steer it on its way. */
import Type from 'typebox'
import { keyActor } from '../../events/activity-store.js'
import { MomentOrNull } from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { EXAMPLE_ID, SEND_EXAMPLE_ANSWER, SendResult } from '../../msa/rest/send-schema.js'
import type { CampaignParts } from '../campaign-parts.js'
import { SENT_EXAMPLE } from '../records/campaign-example.js'
import {
  CampaignParams,
  CampaignSchema,
  campaignToApi,
  ExcludedSchema,
  excludedToApi,
} from '../records/campaign-schema.js'
import { requireCampaign, steerCampaign, type Steering } from '../records/campaigns.js'
import { sendCampaign } from './send-campaign.js'
import { sendTest } from './test-send.js'
import { countAudience, whomItMeans } from './whom.js'

const MOST_TEST_ADDRESSES = 10

const SendCampaignBody = Type.Object(
  {
    send_at: Type.Optional(
      Type.String({
        maxLength: 64,
        shownFormat: 'date-time',
        description: 'ISO 8601, in the future and within 72 hours. Left out: now.',
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
    to: Type.Union([Mailbox, Type.Array(Type.String(), { minItems: 1, maxItems: MOST_TEST_ADDRESSES })], {
      description: `One address, or up to ${MOST_TEST_ADDRESSES}.`,
    }),
  },
  { additionalProperties: false, title: 'CampaignTestRequest' },
)

const EXCLUDED = { unsubscribed: 3, bounced: 1, suppressed: 1 }

/** @param wake there is something to be done for a campaign */
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
        'No further mail is queued, and what is queued is held: within two seconds no mail leaves any more, except one whose text was already ' +
        'sent to its server and only awaits the reply. `stats.held` says how many are held. Held mail does not expire. A pause is ' +
        'independent of what an operator holds or releases in the queue.',
    }),
    steerRoute(parts, wake, {
      act: 'resume',
      operationId: 'resumeCampaign',
      summary: 'Resume a campaign.',
      description:
        'Releases held mail and continues with the remaining recipients. Nobody is skipped or mailed twice. A campaign paused before its ' +
        'scheduled time is scheduled again.',
    }),
    steerRoute(parts, wake, {
      act: 'cancel',
      operationId: 'cancelCampaign',
      summary: 'Cancel a campaign.',
      description:
        'Queued mail is held at once and then withdrawn. A mail whose text was already sent to its server ends as that delivery ends, and ' +
        'is not retried. Withdrawn mails read failed, ' +
        'and their recipients cancelled, as do all who had not had their turn, also where they are still being found. A cancelled campaign ' +
        'cannot be resumed.',
    }),
  ]
}

function audienceRoute({ send: { database, clock } }: CampaignParts): Route {
  return route({
    method: 'GET',
    path: '/campaigns/:id/audience',
    access: 'campaigns:read',
    operationId: 'getCampaignAudience',
    chapter: 'Campaigns',
    summary: 'How many contacts a campaign means, how many may be mailed, and why the others may not.',
    description:
      'Counted now for a draft and for a campaign that has not started; 503 where that takes longer than a few seconds. Otherwise as of the ' +
      'start of the campaign.',
    params: CampaignParams,
    response: Type.Object(
      {
        total: Type.Integer(),
        mailable: Type.Integer({ description: 'Subscribed, not bounced, not suppressed.' }),
        ...ExcludedSchema.properties,
      },
      { title: 'CampaignAudience' },
    ),
    exampleAnswer: { total: 105, mailable: 100, ...EXCLUDED },
    errors: ['not_found'],
    async handle({ principal: { workspaceId }, params }) {
      const campaign = await requireCampaign(database.reader, workspaceId, params.id)
      const counted =
        campaign.who === null && campaign.fixedAt === null
          ? await countAudience(database, clock, workspaceId, await whomItMeans(database.reader, campaign))
          : { ...excludedToApi(campaign), mailable: campaign.recipients }
      const { mailable, unsubscribed, bounced, suppressed } = counted
      const total = mailable + unsubscribed + bounced + suppressed
      return { total, mailable, unsubscribed, bounced, suppressed }
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
    summary: 'Send a campaign, now or later.',
    description:
      'The list or segment is evaluated once, when the campaign starts: now, or at `send_at`. Contacts who are created or join later are not ' +
      'mailed. For a scheduled campaign `total_recipients` and `excluded` are an estimate, counted now, until it starts. Each recipient gets a ' +
      'row right after the start; until all have theirs, totals may still change by who changed meanwhile. Who is unsubscribed, bounced, suppressed or deleted when a mail is handed over is skipped then. The html is that of the ' +
      'template as it is now, and so are sender and settings of the workspace.\n\n' +
      'Mails are handed to the queue as fast as they leave it, which never holds more than some thousand that were not tried yet, within ' +
      'rate_per_hour and send_window. Where the hourly or daily limit of the workspace is used up, the campaign waits for the next hour or ' +
      'day. It is completed once all mails are delivered or given up. Mails are marketing: an unsubscribe stops them, and each has a way to ' +
      'unsubscribe.\n\n' +
      'With a sandbox key it runs to its end without mail; addresses at `simulator.test` play their outcome.',
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
    summary: 'Send the mail of a campaign to yourself.',
    description:
      'As its recipients get it, with the template as it is now; merge tags are filled from the contact who has the address, if any. It ' +
      'counts against limits like a single send, and in no statistics of the campaign. It is marketing as well: who has unsubscribed is skipped.',
    params: CampaignParams,
    body: CampaignTestBody,
    example: { to: 'ann@example.net' },
    response: SendResult,
    exampleAnswer: {
      ...SEND_EXAMPLE_ANSWER,
      results: [{ to: 'ann@example.net', message_id: EXAMPLE_ID, success: true }],
    },
    errors: ['not_found', 'missing_from_email', 'template_not_found', 'domain_invalid', 'limit_reached'],
    handle: ({ principal, params, body }) => sendTest(parts, principal, params.id, body.to),
  })
}

interface SteerRoute {
  readonly act: Steering
  readonly operationId: string
  readonly summary: string
  readonly description: string
}

function steerRoute(
  { send: { database, clock }, onHolds }: CampaignParts,
  wake: () => void,
  { act, ...described }: SteerRoute,
): Route {
  return route({
    method: 'POST',
    path: `/campaigns/:id/${act}`,
    access: 'campaigns:send',
    chapter: 'Campaigns',
    ...described,
    params: CampaignParams,
    response: CampaignSchema,
    exampleAnswer: { ...SENT_EXAMPLE, status: STEERED[act], completed_at: null },
    errors: ['not_found', 'conflict'],
    async handle({ principal, params }) {
      const campaign = await database.write(tx =>
        steerCampaign(tx, principal.workspaceId, params.id, act, keyActor(principal), clock.now()),
      )
      onHolds()
      wake()
      return campaignToApi(campaign)
    },
  })
}

const STEERED = { pause: 'paused', resume: 'sending', cancel: 'cancelled' } as const
