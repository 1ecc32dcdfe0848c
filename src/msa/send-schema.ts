/** What the email routes take and give. */
import Type, { type Static } from 'typebox'

/** Characters; the limit in bytes is checked beside it. */
const BODY_CHARACTERS = 262_144

/** 256 KB of text, escaped at worst sixfold in JSON, twice (html and text), and the small fields. */
export const SEND_BODY_LIMIT = 4 * 1_024 * 1_024

const address = { minLength: 1, maxLength: 320 }

export const SendBody = Type.Object(
  {
    to: Type.Union([
      Type.String({ ...address, description: 'One address.' }),
      // An empty entry is an invalid address like any other, which is skipped.
      Type.Array(Type.String({ maxLength: address.maxLength }), {
        minItems: 1,
        maxItems: 100,
        description: 'Each gets a message of its own.',
      }),
    ]),
    subject: Type.String({ minLength: 1, maxLength: 998, description: 'HTML tags are stripped.' }),
    html: Type.Optional(Type.String({ maxLength: BODY_CHARACTERS, description: 'At most 256 KB in UTF-8.' })),
    text: Type.Optional(
      Type.String({
        maxLength: BODY_CHARACTERS,
        description: 'At most 256 KB; made from html when left out.',
      }),
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
  },
  { additionalProperties: false },
)
export type SendBody = Static<typeof SendBody>

export const SendResult = Type.Object({
  sent: Type.Integer({ description: 'Recipients whose mail was accepted.' }),
  failed: Type.Integer(),
  skipped: Type.Integer({ description: 'Suppressed, invalid or named twice.' }),
  total: Type.Integer(),
  results: Type.Array(
    Type.Object({
      to: Type.String(),
      message_id: Type.String(),
      success: Type.Boolean(),
      reason: Type.Optional(Type.String({ description: 'suppressed, invalid or duplicate.' })),
    }),
  ),
})

export const MessageParams = Type.Object({ messageId: Type.String({ maxLength: 64 }) })

const Moment = Type.Union([Type.String(), Type.Null()])
const TextOrNull = Type.Union([Type.String(), Type.Null()])

const statusFields = {
  message_id: Type.String(),
  status: Type.String({
    description:
      'sent (accepted, queued or deferred), delivered, opened, clicked, bounced, failed or suppressed.',
  }),
  to: Type.String(),
  sent_at: Moment,
  delivered_at: Moment,
  opened_at: Moment,
  clicked_at: Moment,
  bounced_at: Moment,
  complained_at: Moment,
  bounce_type: TextOrNull,
  reason: Type.Optional(Type.String({ description: 'Why a recipient was skipped.' })),
  attempts: Type.Integer({ description: 'Delivery attempts begun.' }),
  next_attempt_at: Moment,
  last_reply: TextOrNull,
}

export const MessageStatusSchema = Type.Object(statusFields)

const HostTriedSchema = Type.Object({
  host: Type.String(),
  address: TextOrNull,
  port: Type.Integer(),
  stage: Type.String({ description: 'How far the dialogue came.' }),
  reply: TextOrNull,
  error: TextOrNull,
  tls: Type.Union([
    Type.Object({
      version: Type.String(),
      cipher: Type.String(),
      verified: Type.Boolean(),
      unverified_reason: TextOrNull,
    }),
    Type.Null(),
  ]),
  tls_policy: Type.Union([Type.String(), Type.Null()], {
    description: 'What the connection had to be: none, opportunistic, require or verify.',
  }),
  tls_policy_source: Type.Union([Type.String(), Type.Null()], {
    description: 'Who asked for it: default, route, site or mta-sts.',
  }),
  mta_sts: Type.Union(
    [
      Type.Object({
        mode: Type.String({ description: 'enforce, testing or unavailable (announced, but not to be had).' }),
        result: Type.Union([Type.String(), Type.Null()], {
          description: 'passed or failed; null where it did not come to that.',
        }),
        reason: TextOrNull,
      }),
      Type.Null(),
    ],
    { description: "What the recipient domain's MTA-STS policy (RFC 8461) said of the host." },
  ),
  duration_ms: Type.Integer(),
  reused_connection: Type.Boolean(),
})

export const MessageSchema = Type.Object({
  ...statusFields,
  subject: Type.String(),
  from: Type.String(),
  created_at: Type.String(),
  sandbox: Type.Boolean(),
  trace: Type.Array(
    Type.Object({
      attempt: Type.Integer(),
      started_at: Type.String(),
      finished_at: Type.String(),
      outcome: Type.String({ description: 'delivered, deferred, bounced or unsendable.' }),
      summary: Type.String(),
      reply_code: Type.Union([Type.Integer(), Type.Null()]),
      smtp_status: TextOrNull,
      cause: TextOrNull,
      scope: TextOrNull,
      subtype: TextOrNull,
      hosts: Type.Array(HostTriedSchema),
    }),
  ),
})
