/** The local inbox of `mta.capture`: `/capture` for operators and listed networks, and in the admin API. */
import Type, { type Static } from 'typebox'
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import { APPLIANCE } from '../core/owner.js'
import type { Database, Queries } from '../db/database.js'
import { recordActivity } from '../events/activity-store.js'
import { adminDownloadRoute, adminListRoute, adminPageRoute, adminRoute } from '../http/admin-route.js'
import {
  MAIL_PAGE_DESCRIPTION,
  MAIL_PAGE_EXAMPLE,
  mailContent,
  MailContentSchema,
  mailPage,
  mailPageQuery,
} from '../http/mail-page.js'
import type { ClientRequest } from '../http/network-access.js'
import { cursorQuery, listBody, OffsetQuery, pageOf } from '../http/pagination.js'
import { openRoute, type Route } from '../http/route.js'
import { octetsToText } from '../mail/mime/charset.js'
import type { Clock } from '../world/time/clock.js'
import {
  deleteCapturedMails,
  findCapturedMail,
  listCapturedMails,
  type CapturedMailHead,
} from './capture-store.js'

const headFields = {
  id: Type.Integer(),
  message_id: Type.String(),
  captured_at: Type.String(),
  envelope_sender: Type.String(),
  recipient: Type.String(),
  subject: Type.String(),
  size: Type.Integer({ description: 'Bytes.' }),
}

export interface CaptureParts {
  readonly database: Database
  readonly clock: Pick<Clock, 'now'>
  /** May read without a credential. */
  readonly isListed: (request: ClientRequest) => boolean
}

export function captureRoutes({ database: { reader }, isListed }: CaptureParts): Route[] {
  const access = { permission: 'system:read', scope: 'appliance', isListed } as const
  return [
    openRoute({
      method: 'GET',
      path: '/capture',
      isAtRoot: true,
      isBare: true,
      access,
      summary: 'List captured mails.',
      query: OffsetQuery,
      response: Type.Unknown(),
      async handle({ query }) {
        const page = pageOf(query)
        const found = await listCapturedMails(reader, page)
        return listBody({ ...found, items: found.items.map(headToApi) }, page)
      },
    }),
    openRoute({
      method: 'GET',
      path: '/capture/:id',
      isAtRoot: true,
      access,
      summary: 'Get a captured mail.',
      params: Type.Object({ id: Type.String({ maxLength: 64 }) }),
      response: Type.Object({
        ...headFields,
        raw: Type.String({ description: 'The message as it would have been sent, as text.' }),
        raw_base64: Type.String({ description: 'The same, byte for byte.' }),
      }),
      errors: ['not_found'],
      async handle({ params }) {
        const mail = await findCapturedMail(reader, params.id)
        if (!mail) throw new AppError('not_found', `no captured mail with id ${params.id}`)
        const raw = Buffer.from(mail.raw)
        const whole = { raw: octetsToText(raw), raw_base64: raw.toString('base64') }
        return { ...headToApi({ ...mail, size: raw.length }), ...whole }
      },
    }),
  ]
}

const CHAPTER = 'Captured mail'
const WRITE = { permission: 'system:write', scope: 'appliance' } as const
const READ = { permission: 'system:read', scope: 'appliance' } as const

const CapturedMailSchema = Type.Object(headFields, { title: 'CapturedMail' })
export type CapturedMailView = Static<typeof CapturedMailSchema>

const Params = Type.Object({
  id: Type.String({ maxLength: 64, description: 'Number of the captured mail, or id of its message.' }),
})

/** Without `mta.capture` the inbox is empty. */
export function capturedMailRoutes({ database, clock }: Omit<CaptureParts, 'isListed'>): Route[] {
  const { reader } = database
  return [
    adminListRoute({
      method: 'GET',
      path: '/captured',
      access: READ,
      operationId: 'listCapturedMail',
      chapter: CHAPTER,
      summary: 'List captured mail, newest first.',
      query: Type.Object(
        {
          ...cursorQuery,
          search: Type.Optional(
            Type.String({
              maxLength: 200,
              description: 'Words, each part of the recipient or the subject; case-insensitive.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      item: CapturedMailSchema,
      async handle({ query }, page) {
        const found = await listCapturedMails(reader, page, query.search)
        return { ...found, items: found.items.map(headToApi) }
      },
    }),
    adminRoute({
      method: 'DELETE',
      path: '/captured',
      access: WRITE,
      operationId: 'deleteCapturedMail',
      chapter: CHAPTER,
      summary: 'Delete all captured mail.',
      response: Type.Object({ deleted: Type.Integer() }, { title: 'CapturedMailDeleted' }),
      async handle({ operator }) {
        const deleted = await database.write(async tx => {
          const mails = await deleteCapturedMails(tx.db)
          await recordActivity(tx, { workspaceId: APPLIANCE, actor: operator.actor }, clock.now(), {
            action: 'captured_mail.deleted',
            subject: 'all captured mail',
            details: { mails },
          })
          return mails
        })
        return { deleted }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/captured/:id',
      access: READ,
      operationId: 'getCapturedMail',
      chapter: CHAPTER,
      summary: 'Get a captured mail.',
      params: Params,
      response: CapturedMailSchema,
      errors: ['not_found'],
      async handle({ params }) {
        const mail = await getCapturedMail(reader, params.id)
        return headToApi({ ...mail, size: mail.raw.length })
      },
    }),
    adminDownloadRoute({
      method: 'GET',
      path: '/captured/:id/source',
      access: READ,
      operationId: 'getCapturedMailSource',
      chapter: CHAPTER,
      summary: 'Download the source of a captured mail.',
      description: 'As it would have been sent, DKIM signature included.',
      params: Params,
      mediaType: 'message/rfc822',
      exampleAnswer: 'Date: Mon, 05 Jan 2026 10:00:00 +0000\r\nSubject: Your order\r\n\r\nThank you.\r\n',
      errors: ['not_found'],
      async handle({ params }) {
        const { id, raw } = await getCapturedMail(reader, params.id)
        return {
          fileName: `captured-${id}.eml`,
          async *pieces() {
            yield raw
          },
        }
      },
    }),
    adminRoute({
      method: 'GET',
      path: '/captured/:id/content',
      access: READ,
      operationId: 'getCapturedMailContent',
      chapter: CHAPTER,
      summary: 'Get header, text and attachments of a captured mail.',
      params: Params,
      response: MailContentSchema,
      errors: ['not_found'],
      handle: async ({ params }) => mailContent(Buffer.from((await getCapturedMail(reader, params.id)).raw)),
    }),
    adminPageRoute({
      method: 'GET',
      path: '/captured/:id/rendered',
      access: READ,
      operationId: 'getRenderedCapturedMail',
      chapter: CHAPTER,
      summary: 'Show the HTML of a captured mail.',
      description: MAIL_PAGE_DESCRIPTION,
      params: Params,
      query: mailPageQuery,
      mediaType: 'text/html',
      exampleAnswer: MAIL_PAGE_EXAMPLE,
      errors: ['not_found'],
      handle: async ({ params, query }) =>
        mailPage(Buffer.from((await getCapturedMail(reader, params.id)).raw), query),
    }),
  ]
}

/** @throws AppError not_found */
async function getCapturedMail(db: Queries, id: string) {
  const mail = await findCapturedMail(db, id)
  if (!mail) throw new AppError('not_found', `no mail ${id} in the local inbox`)
  return mail
}

export function headToApi(mail: CapturedMailHead) {
  return {
    id: mail.id,
    message_id: mail.messageId,
    captured_at: isoTime(mail.capturedAt),
    envelope_sender: mail.envelopeSender,
    recipient: mail.recipient,
    subject: mail.subject,
    size: mail.size,
  }
}
