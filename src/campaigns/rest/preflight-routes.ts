import Type, { type Static } from 'typebox'
import { findContactsOf } from '../../audience/contacts/contact-store.js'
import { BLOCK_TYPES } from '../../content/blocks/structure.js'
import { AppError } from '../../core/errors.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import {
  Id,
  IntegerOrNull,
  Moment,
  MomentOrNull,
  orNull,
  TextOrNull,
} from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import { variantName } from '../model/ab-test.js'
import { VariantId } from './ab-test-schema.js'
import { CampaignParams } from './campaign-schema.js'
import type { Campaign } from '../model/campaign.js'
import { requireCampaign } from '../model/campaigns.js'
import { readSendingTime, SendingTimeOrNull } from './sending-time.js'
import { countAudience, findCampaignAudience } from '../model/campaign-audience.js'
import { CHECK_STATUSES, findCheck, startCheck, type CampaignCheck } from '../preflight/check-store.js'
import { FINDINGS, MAX_PLACES, SEVERITIES, type FindingCode } from '../preflight/findings.js'
import type { PreflightParts } from '../preflight/preflight-parts.js'

const PlaceSchema = Type.Object(
  {
    template_id: Id(),
    block: orNull(
      Type.Object({
        id: Type.String(),
        type: Type.Enum([...BLOCK_TYPES]),
        path: Type.String({ description: 'E.g. `json_structure.blocks.3`, as in errors.' }),
      }),
      { description: 'Null for the template as a whole, and for a template without `json_structure`.' },
    ),
  },
  { title: 'FindingPlace' },
)

const FindingSchema = Type.Object(
  {
    code: Type.Enum(Object.keys(FINDINGS) as FindingCode[]),
    severity: Type.Enum([...SEVERITIES], {
      description:
        '`error`: mail would not be sent, or be wrong. `warning`: it would look wrong or be distrusted. `notice`: worth knowing.',
    }),
    message: Type.String({ description: 'In English, for people.' }),
    about: TextOrNull({ description: 'The merge tag, link, image or DNS record.' }),
    recipients: IntegerOrNull({ description: 'How many recipients it concerns; null: all of them.' }),
    contacts: Type.Array(Type.Object({ id: Id(), email: Type.String() }), {
      description: 'Up to 5 of them.',
    }),
    variants: Type.Array(VariantId, {
      description: 'Variants of the A/B test it concerns; empty: all mail.',
    }),
    clients: Type.Array(Type.String(), {
      description:
        'With `feature_unsupported`: mail clients that lack the feature, among those that your mail is opened in if that is known.',
    }),
    opens_share: orNull(Type.Number(), {
      description:
        "The share of the workspace's opens of the last 90 days that these clients had, 0 to 1; null with fewer than 20 opens. Opens of clients " +
        'that cannot be told apart, such as webmail in browsers, count in the whole.',
    }),
    places: Type.Array(PlaceSchema, {
      description:
        `Where in templates it is, as they were when the check ran, up to ${MAX_PLACES}; empty for what is not in a template, such as the ` +
        'subject or the sender, and for what is between the blocks.',
    }),
  },
  { title: 'CampaignFinding' },
)

const SpamSchema = Type.Object(
  {
    score: Type.Number(),
    required_score: Type.Number({ description: 'The score from which on rspamd rejects mail.' }),
    action: Type.String({ description: 'What rspamd would do, e.g. `no action`, `add header` or `reject`.' }),
    symbols: Type.Array(
      Type.Object({
        name: Type.String(),
        score: Type.Number({ description: 'Negative if it speaks for the mail.' }),
        description: Type.String({ description: 'May be empty.' }),
      }),
      { description: 'What counted, most first; up to 100.' },
    ),
  },
  { title: 'SpamScore' },
)

const CheckSchema = Type.Object(
  {
    status: Type.Enum([...CHECK_STATUSES], { description: 'One of: running, completed, failed.' }),
    checked: Type.Integer({ description: 'Recipients for whom the mail has been rendered.' }),
    total: Type.Integer({ description: 'Recipients in all; an estimate while the check runs.' }),
    html_bytes: IntegerOrNull({
      description: 'Size of the longest HTML, about; Gmail clips mail above 102 KB.',
    }),
    errors: Type.Integer({ description: 'Findings with severity `error`.' }),
    warnings: Type.Integer(),
    findings: Type.Array(FindingSchema, { description: 'Empty while the check runs. Errors first.' }),
    spam: orNull(SpamSchema, {
      description:
        'What the rspamd of `campaigns.rspamd_url` says of the mail of one recipient, of the variants the worst; null if none is set up or it did not answer.',
    }),
    sending_time: SendingTimeOrNull,
    started_at: Moment(),
    finished_at: MomentOrNull(),
  },
  { title: 'CampaignCheck' },
)

const EXAMPLE: Static<typeof CheckSchema> = {
  status: 'completed',
  checked: 100,
  total: 100,
  html_bytes: 18_240,
  errors: 0,
  warnings: 1,
  findings: [
    {
      code: 'merge_value_missing',
      severity: 'warning',
      message: '{{firstName}} is empty: there is no value and no fallback',
      about: 'firstName',
      recipients: 12,
      clients: [],
      opens_share: null,
      contacts: [{ id: '01890a5d-ac96-774b-bcce-b302099a8057', email: 'ann@example.net' }],
      variants: [],
      places: [
        {
          template_id: '01890a5d-ac96-774b-bcce-b302099a8058',
          block: { id: 'greeting', type: 'header', path: 'json_structure.blocks.0' },
        },
      ],
    },
  ],
  spam: {
    score: 1.2,
    required_score: 15,
    action: 'no action',
    symbols: [{ name: 'SUBJ_ALL_CAPS', score: 1.2, description: 'Subject contains mostly capital letters' }],
  },
  sending_time: {
    duration_seconds: 0,
    limited_by: null,
    limit: null,
    detail: 'Less than a minute.',
  },
  started_at: '2026-01-15T09:30:00.000Z',
  finished_at: '2026-01-15T09:30:04.000Z',
}

/** @param wake tells the runner that there is a check */
export function preflightRoutes(parts: PreflightParts, wake: () => void): Route[] {
  const { send } = parts
  const { database, clock, newId } = send
  return [
    route({
      method: 'POST',
      path: '/campaigns/:id/check',
      access: 'campaigns:write',
      operationId: 'checkCampaign',
      chapter: 'Campaigns',
      summary: 'Check a campaign before sending it.',
      description:
        'Renders the mail for every recipient as it would be sent now, without sending it, and reports who lacks which merge value, ' +
        'whose links are empty or broken, what mail clients will clip, not support or distrust, links and images that cannot be reached, and ' +
        'what is wrong with the sender, and how long sending takes at the limits that hold now; with `campaigns.rspamd_url`, also what rspamd makes of the mail of one recipient. Each variant of an A/B ' +
        'test is checked for all recipients. Runs in the background; ask for the result with `GET`. Starting a check replaces the earlier one.',
      params: CampaignParams,
      status: 202,
      response: CheckSchema,
      exampleAnswer: {
        ...EXAMPLE,
        status: 'running',
        checked: 0,
        html_bytes: null,
        findings: [],
        warnings: 0,
        spam: null,
        finished_at: null,
      },
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId }, params }) {
        const campaign = await requireCampaign(database.reader, workspaceId, params.id)
        if (campaign.status !== 'draft' && campaign.status !== 'scheduled')
          throw new AppError(
            'conflict',
            `the campaign is ${campaign.status}; only what is not sent yet can be checked`,
          )
        const total = await estimateOf(send, campaign)
        const check = { campaign: campaign.seq, id: newId(), startedAt: clock.now(), total }
        await database.write(async tx => {
          await startCheck(tx.db, check)
          tx.changed('campaigns')
        })
        wake()
        return checkToApi(parts, campaign, await requireCheck(database.reader, campaign.seq))
      },
    }),
    route({
      method: 'GET',
      path: '/campaigns/:id/check',
      access: 'campaigns:read',
      operationId: 'getCampaignCheck',
      chapter: 'Campaigns',
      summary: "Get a campaign's newest check.",
      description: 'Kept for 30 days.',
      params: CampaignParams,
      response: CheckSchema,
      exampleAnswer: EXAMPLE,
      errors: ['not_found'],
      async handle({ principal: { workspaceId }, params }) {
        const campaign = await requireCampaign(database.reader, workspaceId, params.id)
        return checkToApi(parts, campaign, await requireCheck(database.reader, campaign.seq))
      },
    }),
  ]
}

/** Of the recipients; 0 if they cannot be counted, which the check then reports. */
async function estimateOf(
  { database, clock }: PreflightParts['send'],
  campaign: Parameters<typeof findCampaignAudience>[1],
): Promise<number> {
  try {
    const who = await findCampaignAudience(database.reader, campaign)
    return (await countAudience(database, clock, campaign.workspaceId, who)).mailable
  } catch (error) {
    if (error instanceof AppError) return 0
    throw error
  }
}

async function requireCheck(db: Queries, campaign: number): Promise<CampaignCheck> {
  const check = await findCheck(db, campaign)
  if (!check) throw new AppError('not_found', 'the campaign has not been checked')
  return check
}

async function checkToApi(
  parts: PreflightParts,
  campaign: Campaign,
  { status, checked, total, largest, findings, spam, startedAt, finishedAt }: CampaignCheck,
): Promise<Static<typeof CheckSchema>> {
  const ids = [...new Set(findings.flatMap(({ contacts = [] }) => contacts))]
  const known = await findContactsOf(parts.send.database.reader, ids)
  const shown = findings.map(
    ({
      code,
      message,
      about = null,
      recipients = null,
      contacts = [],
      variants = [],
      clients = [],
      opensShare = null,
      places = [],
    }) => ({
      code,
      severity: FINDINGS[code],
      message,
      about,
      recipients,
      // Those who were deleted since are left out.
      contacts: contacts.flatMap(id => {
        const email = known.get(id)?.email
        return email === undefined ? [] : [{ id, email }]
      }),
      variants: variants.map(variantName),
      clients: [...clients],
      opens_share: opensShare,
      places: places.map(({ templateId, block = null }) => ({ template_id: templateId, block })),
    }),
  )
  const count = (severity: (typeof SEVERITIES)[number]) =>
    shown.filter(one => one.severity === severity).length
  return {
    status,
    checked,
    total,
    html_bytes: largest,
    errors: count('error'),
    warnings: count('warning'),
    findings: shown,
    spam: spam && {
      score: spam.score,
      required_score: spam.requiredScore,
      action: spam.action,
      symbols: spam.symbols.map(symbol => ({ ...symbol })),
    },
    sending_time: await readSendingTime(parts, campaign, total),
    started_at: isoTime(startedAt),
    finished_at: finishedAt === null ? null : isoTime(finishedAt),
  }
}
