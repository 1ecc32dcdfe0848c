/**
 * `POST /bounces/parse`: how a returned mail is read, for an operator who has one at hand. Stores nothing and suppresses nobody.
 *
 * Only the beginning of a mail is kept in memory: the parser reads no more. `postroad bounce parse` prints the same without a server.
 */
import Type, { type Static } from 'typebox'
import { adminUploadRoute } from '../../http/admin-route.js'
import { IntegerOrNull, orNull, TextOrNull } from '../../http/answer/answer-fields.js'
import type { Route } from '../../http/route.js'
import { addressDomain } from '../../mail/address.js'
import { CAUSES, PERMANENCES, SCOPES } from '../../mail/outcome.js'
import { readReturnedMail } from '../../mail/returned/read-returned-mail.js'
import type { ReturnedMail, ReturnedRecipient } from '../../mail/returned/returned-mail.js'
import { ispName } from './isp-name.js'

const RecipientSchema = Type.Object({
  recipient: Type.String({ description: 'Address that failed or complained; empty if withheld.' }),
  action: orNull(Type.Enum(['failed', 'delayed', 'delivered', 'relayed', 'expanded']), {
    description: 'RFC 3464 §2.3.3; null in feedback and automatic replies.',
  }),
  status: TextOrNull({ description: 'Enhanced status code (RFC 3463), stated or derived, e.g. 5.1.1.' }),
  reply_code: IntegerOrNull({ description: 'SMTP reply code.' }),
  diagnostic_code: TextOrNull({ description: "The remote server's text, at most 1,000 characters." }),
  remote_mta: TextOrNull({ description: 'Host that rejected it.' }),
  isp_name: TextOrNull({ description: 'Mailbox provider, if it is a known one.' }),
  type: orNull(Type.Enum([...PERMANENCES])),
  subtype: TextOrNull({ description: 'Reason, e.g. no_such_mailbox.' }),
  cause: orNull(Type.Enum([...CAUSES]), {
    description: 'Only a permanent bounce with cause `recipient` suppresses the address.',
  }),
  scope: orNull(Type.Enum([...SCOPES]), {
    description: 'What the rejection applies to; `source` is the sending host.',
  }),
  feedback_type: TextOrNull({ description: 'RFC 5965 §3.1, e.g. abuse.' }),
})

const ParsedSchema = Type.Object(
  {
    kind: Type.Enum(['bounce', 'delay', 'feedback', 'auto_reply', 'other'], {
      description: '`other` reports no failure, e.g. a delivery report.',
    }),
    format: Type.String({
      description: 'Recognized format, e.g. rfc3464, qmail, exim, arf; none if unknown.',
    }),
    original_message_id: TextOrNull({ description: 'Message-ID of the returned mail, without <>.' }),
    recipients: Type.Array(RecipientSchema),
  },
  { title: 'ParsedBounce' },
)
export type ParsedBounce = Static<typeof ParsedSchema>

/** Octets of a file; a bounce may contain the whole mail that it returns. */
const MAX_OCTETS = 64 * 1_024 * 1_024
/** Octets kept; more than the parser looks at. */
const MAX_READ = 1_024 * 1_024

export function parseBounceRoute(): Route {
  return adminUploadRoute({
    method: 'POST',
    path: '/bounces/parse',
    access: { permission: 'any', scope: 'appliance' },
    operationId: 'parseBounce',
    chapter: 'Bounces',
    summary: 'Parse a bounce message.',
    description: 'Reads a returned mail as one received by this server. Stores nothing.',
    upload: {
      octets: MAX_OCTETS,
      mediaTypes: ['message/rfc822', 'text/plain'],
      fields: {},
      example:
        'From: MAILER-DAEMON@mx.example.net\r\nSubject: Undelivered Mail Returned to Sender\r\n\r\n' +
        '<ann@example.net>: host mx.example.net said: 550 5.1.1 no such user\r\n',
    },
    response: ParsedSchema,
    handle: async (_, { pieces }) => parsedToApi(readReturnedMail(await readBeginning(pieces))),
  })
}

/** Reads all of it, so that the client gets an answer, and returns the beginning. */
async function readBeginning(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const kept: Buffer[] = []
  let left = MAX_READ
  for await (const piece of pieces) {
    if (left > 0) kept.push(piece.subarray(0, left))
    left -= piece.length
  }
  return Buffer.concat(kept)
}

export function parsedToApi(mail: ReturnedMail): ParsedBounce {
  return {
    // A delivery, relay or expansion report reports no failure.
    kind: mail.kind === 'success' ? 'other' : mail.kind,
    format: mail.form,
    original_message_id: mail.original?.messageId ?? null,
    recipients: mail.recipients.map(recipientToApi),
  }
}

function recipientToApi(one: ReturnedRecipient): ParsedBounce['recipients'][number] {
  return {
    recipient: one.recipient,
    action: one.action ?? null,
    status: one.status ?? null,
    reply_code: one.replyCode ?? null,
    diagnostic_code: one.diagnosticCode ?? null,
    remote_mta: one.remoteMta ?? null,
    isp_name: ispName(addressDomain(one.recipient), one.remoteMta) ?? null,
    type: one.type ?? null,
    subtype: one.subtype ?? null,
    cause: one.cause ?? null,
    scope: one.scope ?? null,
    feedback_type: one.feedbackType ?? null,
  }
}
