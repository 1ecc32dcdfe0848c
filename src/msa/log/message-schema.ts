/** Response schemas of stored messages: status, trace, log. */
import Type from 'typebox'
import { Id, IdOrNull, Moment, MomentOrNull, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import { WaitingForOrNull } from '../../http/answer/waiting-for.js'
import { OUTCOME_KINDS, PERMANENCES } from '../../mail/outcome.js'
import { DELIVERY_STATES } from '../../queue/delivery-state-store.js'
import { MESSAGE_STATUSES, SKIP_REASONS } from '../../messages/message-status.js'

export const MessageParams = Type.Object({ messageId: Type.String({ maxLength: 64 }) })

/** `sent` means accepted, queued or deferred. */
export const MessageStatusEnum = Type.Enum([...MESSAGE_STATUSES], {
  description: '`sent`: accepted, queued or deferred.',
})

/** Delivery state of a `sent` message; null for others, and once it has left the queue. */
export const DeliveryStateOrNull = orNull(Type.Enum([...DELIVERY_STATES]), {
  description:
    'Delivery state of a message with status `sent`: `queued` (not tried yet), `sending`, or `deferred` (waiting for a retry). Null otherwise, and ' +
    'if the id stands for several messages.',
})

export const SkipReasonEnum = Type.Enum([...SKIP_REASONS], {
  description: 'Why a recipient was skipped.',
})

/** Timestamps of a message; built by `historyToApi`. */
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
  scheduled_at: Type.Optional(Moment({ description: 'The send_at of a scheduled message.' })),
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
      { description: 'The messages of a scheduled send to several recipients, in the order of the request.' },
    ),
  ),
  delivery_state: DeliveryStateOrNull,
  attempts: Type.Integer({
    description: 'Delivery attempts started; of a scheduled send to several recipients, their sum.',
  }),
  next_attempt_at: MomentOrNull(),
  last_reply: TextOrNull(),
  waiting_for: WaitingForOrNull(
    'Why it is not delivered now: a hold, a limit, a back-off of the receiving hosts, a retry. For an id of several messages always null.',
  ),
}

export const MessageStatusSchema = Type.Object(statusFields, { title: 'MessageStatus' })

const HostTriedSchema = Type.Object(
  {
    host: Type.String(),
    address: TextOrNull(),
    port: Type.Integer(),
    stage: Type.String({ description: 'Last stage the SMTP dialogue reached.' }),
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
      description: 'Required TLS level: none, opportunistic, require or verify.',
    }),
    tls_policy_source: TextOrNull({
      description: 'What required it: default, route, site or mta-sts.',
    }),
    mta_sts: Type.Union(
      [
        Type.Object({
          mode: Type.String({
            description: 'enforce, testing, or unavailable (announced but could not be fetched).',
          }),
          result: TextOrNull({
            description: 'passed or failed; null if it was not checked.',
          }),
          reason: TextOrNull(),
        }),
        Type.Null(),
      ],
      { description: "Result of the recipient domain's MTA-STS policy (RFC 8461) for the host." },
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
        "The address's contact when the mail was accepted; null if the id stands for several messages.",
    }),
    template_id: IdOrNull(),
    created_at: Moment(),
    is_sandbox: Type.Boolean(),
    trace: Type.Array(
      Type.Object(
        {
          message_id: Type.Optional(
            Id({ description: 'The message of this attempt, in a scheduled send to several recipients.' }),
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
