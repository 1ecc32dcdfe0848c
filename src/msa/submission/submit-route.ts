/**
 * `POST /messages/submit`: an operator sends a complete message, as a client of the submission listener would.
 *
 * The message streams to the database like one received by SMTP, so memory stays bounded. Takes files as programs write them: lines may end
 * with LF, and an mbox separator may come first. Fails as submission does; a refusal in SMTP terms becomes a validation_error.
 */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import type { Queries } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { adminUploadRoute } from '../../http/admin-route.js'
import { Id } from '../../http/answer/answer-fields.js'
import type { OperatorPrincipal } from '../../http/operator.js'
import type { Principal } from '../../http/principal.js'
import type { Route } from '../../http/route.js'
import { PART_OCTETS } from '../../mail/message-spool.js'
import { unfoldedValue } from '../../mail/mime/header-fields.js'
import { parseAddress } from '../../mail/address.js'
import { decodeOctets } from '../../mail/mime/charset.js'
import { mailboxesOf, readAddressList } from '../../mail/relay/address-list.js'
import { assertNoFaults, readRelayedHeader, type RelayedHeader } from '../../mail/relay/relayed-header.js'
import { SmtpRefusal } from '../../smtp/receiver.js'
import type { SendParts } from '../rest/send-email.js'
import { SubmissionTransaction } from './submission-transaction.js'

export interface SubmitRouteParts extends Pick<Services, 'log' | 'hostname'> {
  readonly send: SendParts
  readonly hasWorkspace: (db: Queries, id: string) => Promise<boolean>
}

const SubmittedSchema = Type.Object(
  { message_ids: Type.Array(Id(), { description: 'Of the first recipients, at most 12.' }) },
  { title: 'SubmittedMessage' },
)
export type SubmittedMessage = Static<typeof SubmittedSchema>

const address = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 320, description }))

export function submitMessageRoute(parts: SubmitRouteParts): Route {
  const { send, log, hostname, hasWorkspace } = parts
  const relay = { ...send, log, hostname }
  return adminUploadRoute({
    method: 'POST',
    path: '/messages/submit',
    access: { permission: 'email:send', scope: 'query' },
    operationId: 'submitMessage',
    chapter: 'Messages',
    summary: 'Send a complete message.',
    description:
      'The same rules apply as to mail received by SMTP. Lines may end with LF. Answers once the message is stored durably; delivery ' +
      'continues in the background. Single emails are sent with `POST /email/send` of the REST API and the header X-Workspace.',
    query: Type.Object(
      {
        workspace_id: Type.String({ minLength: 1, maxLength: 64, description: 'Workspace that sends it.' }),
        from: address('Envelope sender; default: the first author in From.'),
        to: address('Envelope recipient; default: all of To, Cc and Bcc.'),
      },
      { additionalProperties: false },
    ),
    upload: {
      octets: send.messageLimit,
      mediaTypes: ['message/rfc822', 'text/plain'],
      fields: {},
      example: 'From: shop@example.com\r\nTo: ann@example.net\r\nSubject: Your order\r\n\r\nThank you.\r\n',
    },
    response: SubmittedSchema,
    errors: ['not_found', 'missing_from_email', 'domain_invalid', 'limit_reached'],
    async handle({ operator, query, peer }, { pieces }) {
      const { workspace_id: workspaceId, from, to } = query
      if (!(await hasWorkspace(send.database.reader, workspaceId)))
        throw new AppError('not_found', `no workspace ${workspaceId}`, { path: 'workspace_id' })
      send.database.storage.requireRoom()
      const octets = withCrlf(pieces)[Symbol.asyncIterator]()
      const first = await firstPart(octets)
      const header = readRelayedHeader(first)
      assertNoFaults(header)
      if (from !== undefined && parseAddress(from)?.needsSmtpUtf8)
        throw new AppError('validation_error', 'from must be ASCII before the @', { path: 'from' })
      const recipients = to === undefined ? recipientsOf(header) : [to]
      const session = {
        id: 'api',
        peerAddress: peer || '127.0.0.1',
        peerPort: 0,
        heloName: hostname,
        isEsmtp: false,
      }
      const submitter = { principal: principalOf(operator, workspaceId), isTrusted: true }
      const mail = { address: from ?? header.from[0]?.address.address ?? '', smtpUtf8: header.isEightBit }
      const transaction = new SubmissionTransaction(relay, session, submitter, mail)
      try {
        for (const recipient of new Set(recipients)) transaction.addRecipient({ address: recipient })
        await transaction.write(first)
        for (let next = await octets.next(); next.done !== true; next = await octets.next())
          await transaction.write(next.value)
        const reply = await transaction.finish()
        return { message_ids: reply.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? [] }
      } catch (error) {
        transaction.abandon()
        if (error instanceof SmtpRefusal) throw new AppError('validation_error', error.message)
        throw error
      }
    },
  })
}

/** @throws AppError validation_error if it names nobody */
function recipientsOf({ fields }: RelayedHeader): string[] {
  const named = fields.filter(({ name }) => ['to', 'cc', 'bcc'].includes(name))
  const all = named.flatMap(({ raw }) =>
    mailboxesOf(readAddressList(decodeOctets(unfoldedValue(raw)))).map(one => one.address),
  )
  if (all.length > 0) return all
  throw new AppError('validation_error', 'no recipient: give to, or a message with To, Cc or Bcc', {
    path: 'to',
  })
}

/** The gate has checked the permission, and counts the operator's requests. */
function principalOf(operator: OperatorPrincipal, workspaceId: string): Principal {
  return {
    keyId: `operator:${operator.id}`,
    keyName: operator.email || operator.name,
    actor: operator.actor,
    workspaceId,
    liveWorkspaceId: workspaceId,
    keyType: 'custom',
    permissions: ['smtp:send'],
    isSandbox: false,
    rateLimit: 0,
    emailRateLimit: 0,
  }
}

/** The header is within it, or too large. */
async function firstPart(octets: AsyncIterator<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = []
  for (let length = 0; length < PART_OCTETS;) {
    const next = await octets.next()
    if (next.done === true) break
    pieces.push(next.value)
    length += next.value.length
  }
  return Buffer.concat(pieces)
}

/** mbox separator, which some programs put before the header. */
const MBOX_LINE = /^From [^\r\n]*(\r?\n|$)/
const LONGEST_SEPARATOR = 1_000

/** Replaces LF by CRLF, and removes the mbox separator. */
async function* withCrlf(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let waiting = ''
  let hasBegun = false
  for await (const piece of pieces) {
    waiting += piece.toString('latin1')
    if (!hasBegun) {
      if (waiting.length < LONGEST_SEPARATOR && !waiting.includes('\n')) continue
      waiting = waiting.replace(MBOX_LINE, '')
      hasBegun = true
    }
    // The LF of a CR at the end may come with the next piece.
    const end = waiting.endsWith('\r') ? waiting.length - 1 : waiting.length
    yield Buffer.from(waiting.slice(0, end).replace(/\r?\n/g, '\r\n'), 'latin1')
    waiting = waiting.slice(end)
  }
  if (!hasBegun) waiting = waiting.replace(MBOX_LINE, '')
  if (waiting !== '') yield Buffer.from(waiting, 'latin1')
}
