/** Schemas of sending: single sends and batch messages. */
import Type, { type Static } from 'typebox'
import { Id, Moment } from '../../http/answer/answer-fields.js'
import { MAX_MAILBOX_LENGTH } from '../../mail/named-address.js'
import { SkipReasonEnum } from '../log/message-schema.js'
import { AppError } from '../../core/errors.js'
import { hasHeaderBreak } from '../../mail/mime/write-header-field.js'

/** Limits in octets of UTF-8. The contract limits html; text leaves room for long reports. */
export const BODY_OCTETS = { html: 256 * 1_024, text: 1_024 * 1_024 }

/** html and text, at worst escaped sixfold in JSON, plus the small fields; attachments are added on top. */
export const SEND_BODY_LIMIT = 8 * 1_024 * 1_024

/** A thousand messages of 100 KB, escapes included; a single large message is limited as in a single send. */
export const BATCH_BODY_LIMIT = 128 * 1_024 * 1_024
/** JSON values in a batch: 500 for each of a thousand messages. */
export const BATCH_BODY_VALUES = 500_000

/** cc and bcc addresses per batch; they are stored in the batch's one transaction. */
export const MAX_BATCH_COPIES = 2_000

const TAGS = 'Merge tags (`{{firstName}}`) are filled in per recipient.'
const address = { minLength: 1, maxLength: MAX_MAILBOX_LENGTH }
const NAMED = '`ann@example.com` or `Ann <ann@example.com>`'
const COPY = 'Copies count toward the 100 recipients and against limits, and share the Message-ID.'

const AttachmentSchema = Type.Object(
  {
    filename: Type.String({
      minLength: 1,
      maxLength: 255,
      description:
        'If a path is given, only its last part is used; bidirectional control characters are removed.',
    }),
    content: Type.String({ description: 'Base64 or base64url, with or without padding and line breaks.' }),
    content_type: Type.Optional(
      Type.String({
        maxLength: 255,
        description:
          'With its parameters (RFC 2045). Default: derived from the filename extension, else application/octet-stream. ' +
          'message/rfc822 is attached as a message if it fits into 7-bit lines, otherwise as application/octet-stream. ' +
          '`text/calendar; method=REQUEST` is an invitation: it becomes an alternative of the text, so that mail programs offer to answer it, ' +
          'and stays attached as application/ics. One per message, at most 1 MB.',
      }),
    ),
    content_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 202, description: 'Referenced as `cid:` in the HTML.' }),
    ),
  },
  { additionalProperties: false, title: 'Attachment' },
)

/** One address or a list; `bounds` sets whether the list may be empty. */
const recipients = (bounds: { readonly minItems?: number }, description: string) =>
  Type.Union([
    Type.String({ ...address, description: `One address: ${NAMED}.` }),
    // Invalid entries are skipped whatever their length; the body limit bounds them.
    Type.Array(Type.String(), {
      ...bounds,
      maxItems: 100,
      description: `${description} Each entry is ${NAMED}; invalid entries are skipped.`,
    }),
  ])

/** Fields shared by single sends and batch messages. */
const messageFields = {
  subject: Type.String({ minLength: 1, maxLength: 998, description: `HTML tags are stripped. ${TAGS}` }),
  html: Type.Optional(
    Type.String({
      maxLength: BODY_OCTETS.html,
      description: `At most 256 KB in UTF-8. ${TAGS} Missing parts of the compliance footer are added.`,
    }),
  ),
  text: Type.Optional(
    Type.String({
      maxLength: BODY_OCTETS.text,
      description: `At most 1 MB in UTF-8. Default: generated from html. ${TAGS}`,
    }),
  ),
  template_id: Type.Optional(
    Type.String({
      maxLength: 64,
      description: "The template's html is sent unless the request has its own.",
    }),
  ),
  template_data: Type.Optional(
    Type.Record(Type.String({ maxLength: 100 }), Type.Unknown(), {
      description:
        'Values for merge tags of the same names, any JSON; overrides contact fields. At most 256 KB as JSON and 10,000 values.',
    }),
  ),
  from_email: Type.Optional(
    Type.String({
      ...address,
      description: `${NAMED}, ASCII before the @. Default: the workspace's default sender.`,
    }),
  ),
  from_name: Type.Optional(
    Type.String({ maxLength: 100, description: "Default: the name in from_email, else the workspace's." }),
  ),
  reply_to: Type.Optional(Type.String({ ...address, description: `${NAMED}, ASCII before the @.` })),
  track_opens: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        "Adds a tracking pixel to the html. Default: the workspace's setting, which is initially true.",
    }),
  ),
  track_clicks: Type.Optional(
    Type.Boolean({
      default: true,
      description:
        "Redirects links in the html through this server to count clicks. Default: the workspace's setting, which is initially " +
        'true. Unsubscribe and preference links are not redirected, nor are links in text.',
    }),
  ),
  cc: Type.Optional(recipients({}, `Copies; all recipients then see to and cc. ${COPY}`)),
  bcc: Type.Optional(recipients({}, `Blind copies, named in no header. ${COPY}`)),
  attachments: Type.Optional(
    Type.Array(AttachmentSchema, {
      maxItems: 50,
      description: "At most 50; the encoded message must stay within the server's size limit.",
    }),
  ),
  headers: Type.Optional(
    Type.Record(Type.String({ maxLength: 76 }), Type.String({ maxLength: 50_000 }), {
      maxProperties: 50,
      description:
        'Additional header fields, of at most 2,000 characters. Fields set by the server (From, Date, List-Unsubscribe, ...) are rejected. ' +
        'Of a longer `References`, the first and last ten message ids are kept.',
    }),
  ),
  tags: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
      maxItems: 20,
      description: 'Your own labels for the message; never sent to recipients.',
    }),
  ),
}

export type MessageFields = Static<Type.TObject<typeof messageFields>>

export const SendBody = Type.Object(
  {
    to: recipients(
      { minItems: 1 },
      'Each recipient gets a separate message and, without cc, sees only its own address.',
    ),
    ...messageFields,
    send_at: Type.Optional(
      Type.String({
        maxLength: 64,
        shownFormat: 'date-time',
        description: 'ISO 8601; in the future, within 72 hours.',
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

const SHARED_FROM = 'The shared address that sends the mail, if it replaces the requested sender.'

export const SendResult = Type.Object(
  {
    sent: Type.Integer({ description: 'Recipients whose mail was accepted.' }),
    failed: Type.Integer(),
    skipped: Type.Integer({ description: 'Suppressed, invalid and duplicate recipients.' }),
    total: Type.Integer(),
    from: Type.Optional(Type.String({ description: SHARED_FROM })),
    results: Type.Array(
      Type.Object(
        {
          to: Type.String({
            description: 'The bare address, its domain as lower-case A-labels; an invalid address as given.',
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

/** Sendable once its domain is verified, so it includes more than the schema requires. */
export const SEND_EXAMPLE = {
  to: 'ann@example.net',
  from_email: 'shop@example.com',
  from_name: 'Shop',
  subject: 'Your order',
  html: '<p>Thank you for your order.</p>',
}

export const EXAMPLE_ID = '0192f3a4-5b6c-7d8e-9f01-23456789abcd'

/** Response to `SEND_EXAMPLE`. */
export const SEND_EXAMPLE_ANSWER = {
  sent: 1,
  failed: 0,
  skipped: 0,
  total: 1,
  results: [{ to: SEND_EXAMPLE.to, message_id: EXAMPLE_ID, success: true }],
}

/** @param message includes the field's name, so that it is clear without the path */
export function invalidField(path: string, message: string): AppError {
  return new AppError('validation_error', message, { path })
}

/** @throws AppError validation_error */
export function refuseControls(text: string, path: string): void {
  if (hasHeaderBreak(text)) throw invalidField(path, `${path} contains control characters`)
}
