/** The local inbox of `mta.capture`: `GET /capture` and `GET /capture/:id`, from loopback only. */
import Type from 'typebox'
import { AppError } from '../core/errors.js'
import { isoTime } from '../core/moments.js'
import type { Queries } from '../db/database.js'
import { listBody, pageOf, pageQuery } from '../http/pagination.js'
import { openRoute, type Route } from '../http/route.js'
import { octetsToText } from '../mail/mime/charset.js'
import { findCapturedMail, listCapturedMails, type CapturedMailHead } from './capture-store.js'

const headFields = {
  id: Type.Integer(),
  message_id: Type.String(),
  captured_at: Type.String(),
  envelope_sender: Type.String(),
  recipient: Type.String(),
  subject: Type.String(),
  size: Type.Integer({ description: 'Bytes.' }),
}

export function captureRoutes(reader: Queries): Route[] {
  return [
    openRoute({
      method: 'GET',
      path: '/capture',
      isAtRoot: true,
      isBare: true,
      access: 'loopback',
      summary: 'List captured mails.',
      query: Type.Object(pageQuery, { additionalProperties: false }),
      response: Type.Unknown(),
      async handle({ query }) {
        const page = pageOf(query)
        const { items, total } = await listCapturedMails(reader, page)
        return listBody({ items: items.map(headToApi), total }, page)
      },
    }),
    openRoute({
      method: 'GET',
      path: '/capture/:id',
      isAtRoot: true,
      access: 'loopback',
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
