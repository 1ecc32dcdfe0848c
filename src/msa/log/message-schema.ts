/** What the routes of stored messages give: status, trace, log. */
import Type from 'typebox'
import { Id, IdOrNull, Moment, MomentOrNull, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { OUTCOME_KINDS, PERMANENCES } from '../../mail/outcome.js'
import { DELIVERY_STATES } from '../../queue/delivery-state-store.js'
import { MESSAGE_STATUSES, SKIP_REASONS } from '../../messages/message-status.js'

export const MessageParams = Type.Object({ messageId: Type.String({ maxLength: 64 }) })

/** How far a message has come; `sent` is accepted, queued or deferred. */
export const MessageStatusEnum = Type.Enum([...MESSAGE_STATUSES], {
  description: '`sent`: accepted, queued or deferred.',
})

/** Where a message that reads `sent` stands; null for any other, and once it is out of the queue. */
export const DeliveryStateOrNull = orNull(Type.Enum([...DELIVERY_STATES]), {
  description:
    'Where a message with status `sent` stands: `queued` (not tried yet), `sending`, or `deferred` (to be tried again). Null otherwise, and ' +
    'where an id stands for several.',
})

/** Why a recipient was not mailed. */
export const SkipReasonEnum = Type.Enum([...SKIP_REASONS], {
  description: 'Why a recipient was skipped.',
})

/** What has happened to a message so far; made by `historyToApi`. */
export const historyFields = {
  sent_at: MomentOrNull(),
  delivered_at: MomentOrNull(),
  opened_at: MomentOrNull(),
  clicked_at: MomentOrNull(),
  bounced_at: MomentOrNull(),
  complained_at: MomentOrNull(),
  bounce_type: orNull(Type.Enum([...PERMANENCES])),
}

const statusFields = {
  message_id: Id(),
  status: MessageStatusEnum,
  to: Type.String(),
  ...historyFields,
  reason: Type.Optional(SkipReasonEnum),
  scheduled_at: Type.Optional(Moment({ description: 'Of a message that was scheduled.' })),
  recipients: Type.Optional(
    Type.Array(
      Type.Object(
        {
          to: Type.String(),
          message_id: Id(),
          status: MessageStatusEnum,
          reason: Type.Optional(SkipReasonEnum),
        },
        { title: 'RecipientStatus' },
      ),
      { description: 'Where the id stands for a scheduled send to several, in the order of the request.' },
    ),
  ),
  delivery_state: DeliveryStateOrNull,
  attempts: Type.Integer({
    description: 'Delivery attempts begun; of a scheduled send to several, at all of them.',
  }),
  next_attempt_at: MomentOrNull(),
  last_reply: TextOrNull(),
}

export const MessageStatusSchema = Type.Object(statusFields, { title: 'MessageStatus' })

const HostTriedSchema = Type.Object(
  {
    host: Type.String(),
    address: TextOrNull(),
    port: Type.Integer(),
    stage: Type.String({ description: 'How far the dialogue came.' }),
    reply: TextOrNull(),
    error: TextOrNull(),
    tls: Type.Union([
      Type.Object({
        version: Type.String(),
        cipher: Type.String(),
        verified: Type.Boolean(),
        unverified_reason: TextOrNull(),
      }),
      Type.Null(),
    ]),
    tls_policy: TextOrNull({
      description: 'What the connection had to be: none, opportunistic, require or verify.',
    }),
    tls_policy_source: TextOrNull({
      description: 'Who asked for it: default, route, site or mta-sts.',
    }),
    mta_sts: Type.Union(
      [
        Type.Object({
          mode: Type.String({
            description: 'enforce, testing or unavailable (announced, but not to be had).',
          }),
          result: TextOrNull({
            description: 'passed or failed; null where it did not come to that.',
          }),
          reason: TextOrNull(),
        }),
        Type.Null(),
      ],
      { description: "What the recipient domain's MTA-STS policy (RFC 8461) said of the host." },
    ),
    duration_ms: Type.Integer(),
    reused_connection: Type.Boolean(),
  },
  { title: 'HostTried' },
)

export const MessageSchema = Type.Object(
  {
    ...statusFields,
    subject: Type.String(),
    from: Type.String(),
    cc: Type.Optional(Type.Array(Type.String())),
    tags: Type.Array(Type.String()),
    attachments: Type.Array(
      Type.Object(
        {
          filename: Type.String(),
          content_type: Type.String(),
          size: Type.Integer({ description: 'Octets.' }),
        },
        { title: 'AttachmentInfo' },
      ),
    ),
    batch_id: IdOrNull(),
    campaign_id: IdOrNull(),
    contact_id: IdOrNull({
      description:
        'Whom the address belonged to when the mail was accepted; null where an id stands for several.',
    }),
    template_id: IdOrNull(),
    created_at: Moment(),
    is_sandbox: Type.Boolean(),
    trace: Type.Array(
      Type.Object(
        {
          message_id: Type.Optional(
            Id({ description: 'Whose attempt it was, where the id stands for a scheduled send to several.' }),
          ),
          attempt: Type.Integer(),
          started_at: Moment(),
          finished_at: Moment(),
          outcome: Type.Enum([...OUTCOME_KINDS]),
          summary: Type.String(),
          reply_code: Type.Union([Type.Integer(), Type.Null()]),
          smtp_status: TextOrNull(),
          cause: TextOrNull(),
          scope: TextOrNull(),
          subtype: TextOrNull(),
          hosts: Type.Array(HostTriedSchema),
        },
        { title: 'DeliveryAttempt' },
      ),
    ),
  },
  { title: 'Message' },
)
