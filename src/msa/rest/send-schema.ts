/** What sending takes and gives: single sends, and the messages of a batch. */
import Type, { type Static } from 'typebox'
import { Id, Moment } from '../../http/answer/answer-fields.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { SkipReasonEnum } from '../log/message-schema.js'

/** Octets in UTF-8. The contract bounds html; plain text is left room for long letters and reports. */
export const BODY_OCTETS = { html: 256 * 1_024, text: 1_024 * 1_024 }

/** html and text, escaped at worst sixfold in JSON, and the small fields; attachments come on top. */
export const SEND_BODY_LIMIT = 8 * 1_024 * 1_024

/** A thousand messages of 100 KB, escapes included; one large message is bounded as in a single send. */
export const BATCH_BODY_LIMIT = 128 * 1_024 * 1_024
/** Fields and entries of all messages: 500 for each of a thousand. */
export const BATCH_BODY_VALUES = 500_000

/** Addresses in cc and bcc of all messages of a batch: they are mails like any other, stored in one transaction. */
export const MOST_BATCH_COPIES = 2_000

const TAGS = 'Merge tags (`{{firstName}}`) are filled in for each recipient.'
const address = { minLength: 1, maxLength: MAX_MAILBOX_LENGTH }
const NAMED = '`ann@example.com` or `Ann <ann@example.com>`'
const COPY =
  'They count among the 100 recipients and as mails against limits, and have the Message-ID of the mail.'

const AttachmentSchema = Type.Object(
  {
    filename: Type.String({
      minLength: 1,
      maxLength: 255,
      description: 'Of a path its last part counts; bidirectional controls are taken out.',
    }),
    content: Type.String({ description: 'Base64 or base64url, with or without padding and line breaks.' }),
    content_type: Type.Optional(
      Type.String({
        maxLength: 255,
        description:
          'Left out: what the ending of filename stands for, else application/octet-stream. message/rfc822 is ' +
          'attached as a message where it fits into 7-bit lines, else as application/octet-stream.',
      }),
    ),
    content_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 202, description: 'What `cid:` in the HTML names.' }),
    ),
  },
  { additionalProperties: false, title: 'Attachment' },
)

/** One address, or a list of them; the bounds on the list tell whether it may be empty. */
const recipients = (bounds: { readonly minItems?: number }, description: string) =>
  Type.Union([
    Type.String({ ...address, description: `One address: ${NAMED}.` }),
    // An entry that is no address is skipped, however long it is: what bounds it is the body's own bound.
    Type.Array(Type.String(), {
      ...bounds,
      maxItems: 100,
      description: `${description} Each entry is ${NAMED}; what is no address is skipped as invalid.`,
    }),
  ])

/** What single sends and the messages of a batch have in common. */
const messageFields = {
  subject: Type.String({ minLength: 1, maxLength: 998, description: `HTML tags are stripped. ${TAGS}` }),
  html: Type.Optional(
    Type.String({
      maxLength: BODY_OCTETS.html,
      description: `At most 256 KB in UTF-8. ${TAGS} It gets the compliance footer as far as it lacks one.`,
    }),
  ),
  text: Type.Optional(
    Type.String({
      maxLength: BODY_OCTETS.text,
      description: `At most 1 MB in UTF-8; made from html when left out. ${TAGS}`,
    }),
  ),
  template_id: Type.Optional(
    Type.String({ maxLength: 64, description: 'Its html is sent, unless the request has its own.' }),
  ),
  template_data: Type.Optional(
    Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
      description:
        'What merge tags of the same names stand for, any JSON; goes before what is known of the contact. At most 256 KB as JSON, 10,000 values.',
    }),
  ),
  from_email: Type.Optional(
    Type.String({
      ...address,
      description: `${NAMED}, ASCII before the @. Left out: the default of the workspace.`,
    }),
  ),
  from_name: Type.Optional(
    Type.String({ maxLength: 100, description: 'Left out: the name in from_email, else the default.' }),
  ),
  reply_to: Type.Optional(Type.String({ ...address, description: `${NAMED}, ASCII before the @.` })),
  track_opens: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        'A picture in the html tells of openings. Left out: as the workspace says, which is true unless it was changed.',
    }),
  ),
  track_clicks: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        'Links of the html lead by way of this server, which counts clicks. Left out: as the workspace says, which is true unless it ' +
        'was changed. Links to unsubscribe and preferences stay as they are, and so do those in text.',
    }),
  ),
  cc: Type.Optional(recipients({}, `Copies: all recipients then see to and cc. ${COPY}`)),
  bcc: Type.Optional(recipients({}, `Blind copies, named in no header. ${COPY}`)),
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
    to: recipients(
      { minItems: 1 },
      'Each gets a message of its own, and sees itself alone where there is no cc.',
    ),
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
  { to: Type.String({ ...address, description: `One address: ${NAMED}.` }), ...messageFields },
  { additionalProperties: false, title: 'BatchMessage' },
)
export type BatchMessage = Static<typeof BatchMessage>

const SHARED_FROM = 'The shared address that sends, where it does so in place of the one asked for.'

export const SendResult = Type.Object(
  {
    sent: Type.Integer({ description: 'Recipients whose mail was accepted.' }),
    failed: Type.Integer(),
    skipped: Type.Integer({ description: 'Suppressed, invalid or named twice.' }),
    total: Type.Integer(),
    from: Type.Optional(Type.String({ description: SHARED_FROM })),
    results: Type.Array(
      Type.Object(
        {
          to: Type.String({
            description: 'The bare address, its domain as A-labels in lower case; what is none, as it came.',
          }),
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
    from: Type.Optional(Type.String({ description: SHARED_FROM })),
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
