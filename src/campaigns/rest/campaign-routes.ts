import Type from 'typebox'
import { keepAnswer } from '../../accounts/idempotency-store.js'
import { copyName } from '../../audience/checks.js'
import { AppError } from '../../core/errors.js'
import { readName } from '../../core/names.js'
import { DONE, Done } from '../../http/answer/answer-fields.js'
import { cursorQuery } from '../../http/pagination.js'
import type { Tagged } from '../../http/preconditions.js'
import type { Principal } from '../../http/principal.js'
import { listRoute, route, type Route } from '../../http/route.js'
import { describeUses, forceQuery, type ReferenceParts } from '../../resource/references.js'
import type { Queries } from '../../db/database.js'
import { withVariant } from '../model/ab-test.js'
import { findTest } from '../model/variant-store.js'
import { findWait, findWaits } from '../sending/find-waits.js'
import { requirePage } from '../archive/page-store.js'
import type { CampaignParts } from '../model/campaign-parts.js'
import type { Campaign, CampaignFields } from '../model/campaign.js'
import { readFields } from './campaign-fields.js'
import { CAMPAIGN_EXAMPLE, DRAFT_EXAMPLE, RESEND_EXAMPLE, SENT_EXAMPLE } from './campaign-example.js'
import {
  CampaignChangesBody,
  CampaignCopyBody,
  CampaignParams,
  CampaignResendBody,
  CampaignSchema,
  campaignToApi,
  NewCampaignBody,
  StatusOfCampaign,
  tagged,
  type ShownCampaign,
} from './campaign-schema.js'
import { deleteCampaign, insertCampaign, listCampaigns, updateDraft } from '../model/campaign-store.js'
import { findCampaignData, insertCampaignData } from '../model/letter-store.js'
import { logAct, NOTHING_SAID, requireAct, requireCampaign, requireNamed } from '../model/campaigns.js'

export function campaignRoutes(parts: CampaignParts & ReferenceParts): Route[] {
  const { send, references } = parts
  const { database, clock, newId, senders } = send
  return [
    listRoute({
      method: 'GET',
      path: '/campaigns',
      access: 'campaigns:read',
      operationId: 'listCampaigns',
      chapter: 'Campaigns',
      summary: 'List campaigns, newest first.',
      query: Type.Object(
        { ...cursorQuery, status: Type.Optional(StatusOfCampaign) },
        { additionalProperties: false },
      ),
      item: CampaignSchema,
      async handle({ principal, query: { status } }, page) {
        const found = await listCampaigns(database.slowReader, principal.workspaceId, status, page)
        const waits = await findWaits(parts, found.items)
        return { ...found, items: found.items.map(one => campaignToApi(one, waits.get(one.seq))) }
      },
    }),
    route({
      method: 'POST',
      path: '/campaigns',
      access: 'campaigns:write',
      operationId: 'createCampaign',
      hasEtag: true,
      chapter: 'Campaigns',
      summary: 'Create a campaign.',
      description:
        'Creates a draft. The template and the list or segment must exist; the template’s content and the sender are resolved when the ' +
        'campaign is sent, by the same rules as for single sends.',
      body: NewCampaignBody,
      example: CAMPAIGN_EXAMPLE,
      exampleAnswer: DRAFT_EXAMPLE,
      keepsAnswer: true,
      response: CampaignSchema,
      status: 201,
      errors: ['template_not_found', 'not_found'],
      async handle({ principal, body, claim }) {
        const { workspaceId, isSandbox } = principal
        const { template_id: templateId, name, subject } = body
        const fields = { templateId, name, subject, ...NOTHING_SAID, ...readFields(body) }
        const workspace = await senders.workspace(workspaceId)
        const now = clock.now()
        const made = { id: newId(), workspaceId, isSandbox, createdAt: now, updatedAt: now, ...fields }
        return database.write(async tx => {
          await requireNamed(tx.db, workspace, fields)
          await insertCampaign(tx.db, made)
          await logAct(tx, made, principal.actor, 'created', now)
          const answer = tagged(await requireCampaign(tx.db, workspaceId, made.id))
          await keepAnswer(tx.db, claim, { status: 201, value: answer.value, etag: answer.etag })
          return answer
        })
      },
    }),
    route({
      method: 'POST',
      path: '/campaigns/:id/duplicate',
      access: 'campaigns:write',
      operationId: 'duplicateCampaign',
      hasEtag: true,
      chapter: 'Campaigns',
      summary: 'Duplicate a campaign.',
      description:
        'Creates a draft with the same subject, template, audience, sender, A/B test and settings. The copy starts with no recipients and no statistics. ' +
        'If its template, list or segment has been deleted, changing or sending the copy reports it.',
      params: CampaignParams,
      body: CampaignCopyBody,
      isBodyOptional: true,
      example: { name: 'February news' },
      exampleAnswer: { ...DRAFT_EXAMPLE, name: 'February news' },
      response: CampaignSchema,
      status: 201,
      location: pathOf,
      errors: ['not_found'],
      handle: ({ principal, params, body }) =>
        copyCampaign(parts, principal, params.id, ({ name }) => ({
          name: body.name === undefined ? copyName('Copy of', name) : readName(body.name),
        })),
    }),
    route({
      method: 'POST',
      path: '/campaigns/:id/resend',
      access: 'campaigns:write',
      operationId: 'resendCampaign',
      hasEtag: true,
      chapter: 'Campaigns',
      summary: 'Resend a campaign to non-openers.',
      description:
        'Creates a draft for recipients to whom this campaign was delivered and who have not opened it, or not clicked in it. Edit and send it like ' +
        'any draft. With an A/B test, it says what the winner said. Its audience is evaluated when it starts: recipients who have opened by then are left out, as are contacts who can no longer be ' +
        'mailed. Opens hidden by a privacy proxy (Apple Mail) are unknown; these recipients count as non-openers.\n\n' +
        'Returns 409 if this campaign has not started or its recipients are no longer kept (`retention.campaign_recipients`).',
      params: CampaignParams,
      body: CampaignResendBody,
      isBodyOptional: true,
      example: { who: 'not_opened', subject: 'In case you missed it' },
      exampleAnswer: { ...RESEND_EXAMPLE, subject: 'In case you missed it' },
      response: CampaignSchema,
      status: 201,
      location: pathOf,
      errors: ['not_found', 'conflict'],
      handle({ principal, params, body }) {
        const { who = 'not_opened', ...changes } = body
        const changed = readFields(changes)
        return copyCampaign(parts, principal, params.id, async (earlier, db) => {
          requireRecipients(earlier)
          const name = copyName('Resend of', earlier.name)
          const audience = {
            listId: null,
            segmentId: null,
            audience: null,
            resendOf: earlier.id,
            resendTo: who,
          }
          const said = await winnersOf(db, earlier)
          return { ...said, name, ...audience, abTest: null, isArchived: false, ...changed }
        })
      },
    }),
    route({
      method: 'GET',
      path: '/campaigns/:id',
      access: 'campaigns:read',
      operationId: 'getCampaign',
      hasEtag: true,
      chapter: 'Campaigns',
      summary: 'Get a campaign with its statistics.',
      description:
        'Counts are cumulative and exact, even after a crash of the server. The `ETag` covers everything shown. With `If-Match`, ' +
        '`total_recipients`, `excluded`, `progress`, `stats`, `rates` and `waiting_for` do not count.',
      params: CampaignParams,
      response: CampaignSchema,
      exampleAnswer: SENT_EXAMPLE,
      errors: ['not_found'],
      async handle({ principal, params }) {
        const campaign = await requireCampaign(database.reader, principal.workspaceId, params.id)
        return tagged(campaign, await findWait(parts, campaign))
      },
    }),
    route({
      method: 'PATCH',
      path: '/campaigns/:id',
      access: 'campaigns:write',
      operationId: 'updateCampaign',
      hasEtag: true,
      checksEtag: true,
      chapter: 'Campaigns',
      summary: 'Update a draft.',
      description:
        'Omitted fields keep their value. 409 if the campaign is no longer a draft, unless the body has `archive` and `archive_indexed` only; ' +
        '409 also if its content is no longer stored because it was not in the archive when it was sent.',
      params: CampaignParams,
      body: CampaignChangesBody,
      response: CampaignSchema,
      exampleAnswer: DRAFT_EXAMPLE,
      errors: ['not_found', 'conflict', 'template_not_found'],
      async handle({ principal, params, body, precondition }) {
        const { workspaceId } = principal
        const changes = readFields(body)
        const workspace = await senders.workspace(workspaceId)
        return database.write(async tx => {
          const before = await requireCampaign(tx.db, workspaceId, params.id)
          precondition?.check(tagged(before).etag)
          if (!isAboutArchive(changes)) requireAct(before, 'edit')
          if (Object.keys(changes).length === 0) return tagged(before)
          const after = { ...before, ...changes, updatedAt: clock.now() }
          if (isAboutArchive(changes)) {
            if (after.isArchived && after.startedAt !== null) await requirePage(tx.db, after, after.updatedAt)
          } else await requireNamed(tx.db, workspace, after)
          await updateDraft(tx.db, before.seq, after, after.updatedAt)
          await logAct(tx, after, principal.actor, 'updated', after.updatedAt)
          return tagged(after)
        })
      },
    }),
    route({
      method: 'DELETE',
      path: '/campaigns/:id',
      access: 'campaigns:write',
      operationId: 'deleteCampaign',
      checksEtag: true,
      chapter: 'Campaigns',
      summary: 'Delete a draft.',
      description: `Only drafts can be deleted; mail that was sent refers to its campaign. ${describeUses('campaign', 'a segment, a dynamic list or an active automation')}`,
      params: CampaignParams,
      query: forceQuery,
      response: Done,
      errors: ['not_found', 'conflict'],
      handle: ({ principal, params, query, precondition }) =>
        database.write(async tx => {
          const campaign = await requireCampaign(tx.db, principal.workspaceId, params.id)
          precondition?.check(tagged(campaign).etag)
          requireAct(campaign, 'delete')
          if (query.force !== true) await references.refuseIfUsed(tx.db, { kind: 'campaign', ...campaign })
          await deleteCampaign(tx.db, campaign.seq)
          await logAct(tx, campaign, principal.actor, 'deleted', clock.now())
          return DONE
        }),
    }),
  ]
}

const ARCHIVE_FIELDS: ReadonlySet<string> = new Set(['isArchived', 'isIndexed'])

function isAboutArchive(changes: Partial<CampaignFields>): boolean {
  return Object.keys(changes).every(name => ARCHIVE_FIELDS.has(name))
}

/** Creates a draft as a copy. @param changesOf fields that differ from the original */
function copyCampaign(
  { send: { database, clock, newId } }: CampaignParts,
  principal: Principal,
  id: string,
  changesOf: (copied: Campaign, db: Queries) => Partial<CampaignFields> | Promise<Partial<CampaignFields>>,
): Promise<Tagged<ShownCampaign>> {
  const { workspaceId } = principal
  return database.write(async tx => {
    const copied = await requireCampaign(tx.db, workspaceId, id)
    const now = clock.now()
    const copy = {
      ...copied,
      ...(await changesOf(copied, tx.db)),
      id: newId(),
      createdAt: now,
      updatedAt: now,
    }
    await insertCampaign(tx.db, copy)
    await logAct(tx, copy, principal.actor, 'created', now)
    const inserted = await requireCampaign(tx.db, workspaceId, copy.id)
    const data = await findCampaignData(tx.db, copied.seq)
    if (data) await insertCampaignData(tx.db, inserted.seq, data)
    return tagged(inserted)
  })
}

/** Fields of the winner of its A/B test; none without a winner. */
async function winnersOf(
  db: Queries,
  { seq, abTest, ...campaign }: Campaign,
): Promise<Partial<CampaignFields>> {
  const winner = abTest && (await findTest(db, seq))?.winner
  if (!abTest || typeof winner !== 'number') return {}
  const { subject, templateId, fromEmail, fromName } = withVariant(campaign, abTest.variants[winner])
  return { subject, templateId, fromEmail, fromName }
}

function pathOf({ id }: ShownCampaign): string {
  return `/campaigns/${id}`
}

function requireRecipients({ startedAt, recipientsPrunedAt }: Campaign): void {
  if (startedAt === null)
    throw new AppError('conflict', 'the campaign has not started; send it before you resend it')
  if (recipientsPrunedAt !== null)
    throw new AppError(
      'conflict',
      'the recipients of this campaign are no longer kept; send to a list or segment',
    )
}
