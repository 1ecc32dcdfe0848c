/** What the routes of stored messages give: status, trace, log. */
import Type from 'typebox'

export const MessageParams = Type.Object({ messageId: Type.String({ maxLength: 64 }) })

const Moment = Type.Union([Type.String(), Type.Null()])
const TextOrNull = Type.Union([Type.String(), Type.Null()])

const statusFields = {
  message_id: Type.String(),
  status: Type.String({
    description:
      'scheduled, cancelled, sent (accepted, queued or deferred), delivered, opened, clicked, bounced, failed or suppressed.',
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
  scheduled_at: Type.Optional(Type.String({ description: 'Of a message that was scheduled.' })),
  recipients: Type.Optional(
    Type.Array(
      Type.Object({
        to: Type.String(),
        message_id: Type.String(),
        status: Type.String(),
        reason: Type.Optional(Type.String({ description: 'Why this one was skipped.' })),
      }),
      { description: 'Where the id stands for a scheduled send to several, in the order of the request.' },
    ),
  ),
  attempts: Type.Integer({
    description: 'Delivery attempts begun; of a scheduled send to several, at all of them.',
  }),
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
  cc: Type.Optional(Type.Array(Type.String())),
  tags: Type.Array(Type.String()),
  attachments: Type.Array(
    Type.Object({ filename: Type.String(), content_type: Type.String(), size: Type.Integer() }),
  ),
  batch_id: TextOrNull,
  campaign_id: TextOrNull,
  created_at: Type.String(),
  sandbox: Type.Boolean(),
  trace: Type.Array(
    Type.Object({
      message_id: Type.Optional(
        Type.String({
          description: 'Whose attempt it was, where the id stands for a scheduled send to several.',
        }),
      ),
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
