/** Inbound mail in the admin API: bounces, complaints and reports received, and their results. */
import Type, { type Static } from 'typebox'
import { AppError } from '../core/errors.js'
import { given } from '../core/given.js'
import { isoTime, isoTimeOrNull } from '../core/moments.js'
import { APPLIANCE } from '../core/owner.js'
import type { Database, Queries } from '../db/database.js'
import { snapshot } from '../db/snapshot.js'
import { recordActivity } from '../events/activity-store.js'
import { adminDownloadRoute, adminListRoute, adminRoute } from '../http/admin-route.js'
import { Moment, MomentOrNull, orNull, TextOrNull } from '../http/answer/answer-fields.js'
import { mailContent, MailContentSchema } from '../http/mail-page.js'
import { cursorQuery } from '../http/pagination.js'
import type { Route } from '../http/route.js'
import type { Clock } from '../world/time/clock.js'
import {
  findInboundMail,
  inboundParts,
  readInboundOctets,
  listInboundMails,
  markUnprocessed,
  type InboundMail,
} from './inbound-mail-store.js'

export interface InboundRouteParts {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
}

const CHAPTER = 'Inbound mail'
const READ = { permission: 'inbound:read', scope: 'appliance' } as const

const InboundMailSchema = Type.Object(
  {
    id: Type.Integer(),
    received_at: Moment(),
    processed_at: MomentOrNull({ description: 'Null: waiting.' }),
    result: TextOrNull({
      description:
        'Results of its parts, e.g. bounce, complaint, unsubscribe, report, forwarded, unconfirmed, unmatched, forged, other, failed.',
    }),
    sender: Type.String({ description: 'Envelope sender; empty for <>.' }),
    recipients: Type.Array(
      Type.Object({
        address: Type.String(),
        purpose: Type.String(),
        message_id: TextOrNull({ description: 'The message that a signed address belongs to.' }),
      }),
    ),
    findings: Type.Array(
      Type.Object({
        recipient: Type.String(),
        result: Type.String(),
        message_id: TextOrNull(),
        confirmed: orNull(Type.Boolean(), {
          description: 'Whether a token proves that it is about that message; otherwise it has no effect.',
        }),
        detail: TextOrNull(),
      }),
    ),
    size: Type.Integer({ description: 'Octets.' }),
    peer_address: Type.String(),
    helo: Type.String(),
    session: Type.String({ description: 'SMTP session, as in the log.' }),
  },
  { title: 'InboundMail' },
)
export type InboundMailView = Static<typeof InboundMailSchema>

const Params = Type.Object({ id: Type.String({ pattern: '^[1-9][0-9]{0,14}$', description: 'Its number.' }) })

export function inboundRoutes({ database, clock }: InboundRouteParts): Route[] {
  const { reader, slowReader } = database
  return [
    adminListRoute({
      method: 'GET',
      path: '/inbound',
      access: READ,
      operationId: 'listInboundMail',
      chapter: CHAPTER,
      summary: 'List inbound mail, newest first.',
      query: Type.Object(
        {
          ...cursorQuery,
          result: Type.Optional(
            Type.String({
              minLength: 1,
              maxLength: 64,
              description: 'Only this result; `other`, `unmatched` and `unconfirmed` had no effect.',
            }),
          ),
          waiting: Type.Optional(
            Type.Boolean({ description: 'Only mail not parsed yet, or only other mail.' }),
          ),
        },
        { additionalProperties: false },
      ),
      item: InboundMailSchema,
      async handle({ query: { result, waiting: isWaiting } }, page) {
        const found = await listInboundMails(slowReader, given({ result, isWaiting }), page)
        return { ...found, items: found.items.map(mailToApi) }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/inbound/:id',
      access: READ,
      operationId: 'getInboundMail',
      chapter: CHAPTER,
      summary: 'Get an inbound mail.',
      params: Params,
      response: InboundMailSchema,
      errors: ['not_found'],
      handle: async ({ params }) => mailToApi(await getMail(reader, params.id)),
    }),
    adminDownloadRoute({
      method: 'GET',
      path: '/inbound/:id/source',
      access: READ,
      operationId: 'getInboundMailSource',
      chapter: CHAPTER,
      summary: 'Download the source of an inbound mail.',
      params: Params,
      mediaType: 'message/rfc822',
      exampleAnswer: 'From: <>\r\nSubject: Undelivered Mail Returned to Sender\r\n\r\n...\r\n',
      errors: ['not_found'],
      async handle({ params }) {
        const mail = await getMail(reader, params.id)
        return { fileName: `inbound-${mail.seq}.eml`, pieces: () => inboundParts(reader, mail) }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/inbound/:id/content',
      access: READ,
      operationId: 'getInboundMailContent',
      chapter: CHAPTER,
      summary: 'Get header, text and attachments of an inbound mail.',
      params: Params,
      response: MailContentSchema,
      errors: ['not_found'],
      handle: async ({ params }) =>
        mailContent(await snapshot(reader, async db => readInboundOctets(db, await getMail(db, params.id)))),
    }),
    adminRoute({
      method: 'POST',
      path: '/inbound/:id/reprocess',
      access: { permission: 'inbound:write', scope: 'appliance' },
      operationId: 'reprocessInboundMail',
      chapter: CHAPTER,
      summary: 'Process an inbound mail again.',
      description: 'E.g. after an upgrade. It is parsed within seconds.',
      params: Params,
      response: Type.Object(
        { id: Type.Integer(), status: Type.Literal('waiting') },
        { title: 'InboundMailReprocessed' },
      ),
      errors: ['not_found'],
      async handle({ operator, params }) {
        const id = Number(params.id)
        await database.write(async tx => {
          if (!(await markUnprocessed(tx, id))) throw noSuchMail(params.id)
          await recordActivity(tx, { workspaceId: APPLIANCE, actor: operator.actor }, clock.now(), {
            action: 'inbound_mail.reprocessed',
            subject: `inbound mail ${id}`,
          })
        })
        return { id, status: 'waiting' as const }
      },
    }),
  ]
}

/** @throws AppError not_found */
async function getMail(db: Queries, id: string): Promise<InboundMail> {
  const mail = await findInboundMail(db, Number(id))
  if (!mail) throw noSuchMail(id)
  return mail
}

function noSuchMail(id: string): AppError {
  return new AppError('not_found', `no inbound mail ${id}`)
}

function mailToApi(mail: InboundMail): InboundMailView {
  return {
    id: mail.seq,
    received_at: isoTime(mail.receivedAt),
    processed_at: isoTimeOrNull(mail.processedAt),
    result: mail.result,
    sender: mail.envelopeSender,
    recipients: mail.recipients.map(({ address, purpose, messageId }) => ({
      address,
      purpose,
      message_id: messageId ?? null,
    })),
    findings: mail.findings.map(({ recipient, result, messageId, isConfirmed, detail }) => ({
      recipient,
      result,
      message_id: messageId ?? null,
      confirmed: isConfirmed ?? null,
      detail: detail ?? null,
    })),
    size: mail.size,
    peer_address: mail.peerAddress,
    helo: mail.heloName,
    session: mail.session,
  }
}
