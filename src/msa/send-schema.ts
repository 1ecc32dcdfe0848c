/** What sending takes and gives: single sends, and the messages of a batch. */
import Type, { type Static } from 'typebox'
import { Id, Moment } from '../http/answer-fields.js'
import { SkipReasonEnum } from './message-schema.js'

/** Characters; the limit in bytes is checked beside it. */
const BODY_CHARACTERS = 262_144

/** 256 KB of text, escaped at worst sixfold in JSON, twice (html and text), and the small fields; attachments come on top. */
export const SEND_BODY_LIMIT = 4 * 1_024 * 1_024

/** A thousand messages of 100 KB, escapes included; one large message is bounded as in a single send. */
export const BATCH_BODY_LIMIT = 128 * 1_024 * 1_024
/** Fields and entries of all messages: 500 for each of a thousand. */
export const BATCH_BODY_VALUES = 500_000

const address = { minLength: 1, maxLength: 320 }
const COPY = 'They count among the 100 recipients and get a message of their own.'

const AttachmentSchema = Type.Object(
  {
    filename: Type.String({ minLength: 1, maxLength: 255 }),
    content: Type.String({ description: 'Base64.' }),
    content_type: Type.Optional(
      Type.String({ maxLength: 255, description: 'Left out: application/octet-stream.' }),
    ),
    content_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 202, description: 'What `cid:` in the HTML names.' }),
    ),
  },
  { additionalProperties: false, title: 'Attachment' },
)

const recipientList = (description: string) =>
  Type.Union([
    Type.String({ ...address, description: 'One address.' }),
    // An empty entry is an invalid address like any other, which is skipped.
    Type.Array(Type.String({ maxLength: address.maxLength }), { minItems: 1, maxItems: 100, description }),
  ])

/** What single sends and the messages of a batch have in common. */
const messageFields = {
  subject: Type.String({ minLength: 1, maxLength: 998, description: 'HTML tags are stripped.' }),
  html: Type.Optional(Type.String({ maxLength: BODY_CHARACTERS, description: 'At most 256 KB in UTF-8.' })),
  text: Type.Optional(
    Type.String({ maxLength: BODY_CHARACTERS, description: 'At most 256 KB; made from html when left out.' }),
  ),
  template_id: Type.Optional(Type.String({ maxLength: 64 })),
  template_data: Type.Optional(Type.Record(Type.String({ maxLength: 100 }), Type.Unknown())),
  from_email: Type.Optional(
    Type.String({ ...address, description: 'Left out: the default of the workspace.' }),
  ),
  from_name: Type.Optional(Type.String({ maxLength: 100 })),
  reply_to: Type.Optional(Type.String({ ...address, description: 'An address, or `Name <address>`.' })),
  track_opens: Type.Optional(Type.Boolean({ default: true })),
  track_clicks: Type.Optional(Type.Boolean({ default: true })),
  cc: Type.Optional(recipientList(`Copies: all recipients then see to and cc. ${COPY}`)),
  bcc: Type.Optional(recipientList(`Blind copies, named in no header. ${COPY}`)),
  attachments: Type.Optional(
    Type.Array(AttachmentSchema, {
      maxItems: 50,
      description: 'The message, encoded, must stay within the size limit of the server.',
    }),
  ),
  headers: Type.Optional(
    Type.Record(Type.String({ maxLength: 76 }), Type.String({ maxLength: 2_000 }), {
      maxProperties: 50,
      description:
        'Further header fields. Those that the server sets (From, Date, List-Unsubscribe, ...) are refused.',
    }),
  ),
  tags: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
      maxItems: 20,
      description: 'Your own words for the message; shown with it, sent to nobody.',
    }),
  ),
}

export type MessageFields = Static<Type.TObject<typeof messageFields>>

export const SendBody = Type.Object(
  {
    to: recipientList('Each gets a message of its own, and sees itself alone where there is no cc.'),
    ...messageFields,
    send_at: Type.Optional(
      Type.String({
        maxLength: 64,
        shownFormat: 'date-time',
        description: 'ISO 8601, in the future and within 72 hours.',
      }),
    ),
  },
  { additionalProperties: false, title: 'SendRequest' },
)
export type SendBody = Static<typeof SendBody>

export const BatchMessage = Type.Object(
  { to: Type.String({ ...address, description: 'One address.' }), ...messageFields },
  { additionalProperties: false, title: 'BatchMessage' },
)
export type BatchMessage = Static<typeof BatchMessage>

export const SendResult = Type.Object(
  {
    sent: Type.Integer({ description: 'Recipients whose mail was accepted.' }),
    failed: Type.Integer(),
    skipped: Type.Integer({ description: 'Suppressed, invalid or named twice.' }),
    total: Type.Integer(),
    results: Type.Array(
      Type.Object(
        {
          to: Type.String(),
          message_id: Id(),
          success: Type.Boolean(),
          reason: Type.Optional(SkipReasonEnum),
        },
        { title: 'RecipientResult' },
      ),
    ),
  },
  { title: 'SendResult' },
)

export const ScheduledResult = Type.Object(
  {
    scheduled: Type.Literal(true),
    message_id: Id({ description: 'Stands for the whole request.' }),
    scheduled_at: Moment(),
  },
  { title: 'ScheduledSend' },
)

/** With what the schema does not demand but a mail needs; works as it is once its domain is verified. */
export const SEND_EXAMPLE = {
  to: 'ann@example.net',
  from_email: 'shop@example.com',
  from_name: 'Shop',
  subject: 'Your order',
  html: '<p>Thank you for your order.</p>',
}

export const EXAMPLE_ID = '0192f3a4-5b6c-7d8e-9f01-23456789abcd'

/** What it is answered with. */
export const SEND_EXAMPLE_ANSWER = {
  sent: 1,
  failed: 0,
  skipped: 0,
  total: 1,
  results: [{ to: SEND_EXAMPLE.to, message_id: EXAMPLE_ID, success: true }],
}
