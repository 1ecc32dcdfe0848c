/**
 * `POST /messages/preview`: a mail as it would be sent, signed, and the hosts it would be offered to. Nothing is stored or sent.
 *
 * Rendered in a thread by the agent that renders what is sent. Fails as a send does for the same sender and texts; conflict if the mail
 * cannot be composed.
 */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { validText } from '../../content/merge/merge-text.js'
import { prepareContent, readTexts } from '../../content/preparation/prepare-content.js'
import { given } from '../../core/given.js'
import type { Queries } from '../../db/database.js'
import { readSigningKeys } from '../../deliverability/domains/domain-store.js'
import type { DomainParts } from '../../deliverability/domains/domain-parts.js'
import { adminRoute } from '../../http/admin-route.js'
import type { Route } from '../../http/route.js'
import { addressDomain, parseAddress } from '../../mail/address.js'
import { octetsToText } from '../../mail/mime/charset.js'
import type { DeliveryAgent } from '../../queue/delivery-agent.js'
import { readSenderFields, withWorkspaceSender } from './address-fields.js'
import type { SendParts } from './send-email.js'
import { BODY_OCTETS, SEND_BODY_LIMIT } from './send-schema.js'

export interface PreviewParts {
  readonly send: SendParts
  readonly domains: Pick<DomainParts, 'seal'>
  readonly returnPath: (messageId: string, recipient: string) => string
  /** Returns what it renders as `captured`. */
  readonly composer: Pick<DeliveryAgent, 'deliver'>
  /** Hosts that mail to a domain is offered to, or why there are none. */
  readonly describeRoute: (domain: string) => Promise<readonly string[]>
  readonly hasWorkspace: (db: Queries, id: string) => Promise<boolean>
}

const PreviewSchema = Type.Object(
  {
    mail: Type.String({ description: 'The message as it would be transmitted, as text.' }),
    route: Type.Array(Type.String(), {
      description:
        'Hosts in the order they are tried, e.g. `mx.example.net [192.0.2.7]:25`; or why there are none.',
    }),
  },
  { title: 'MailPreview' },
)
export type MailPreview = Static<typeof PreviewSchema>

const mailbox = { minLength: 1, maxLength: 320 }
const Body = Type.Object(
  {
    from_email: Type.String({ ...mailbox, description: 'Sender.' }),
    to: Type.String({ ...mailbox, description: 'Recipient.' }),
    subject: Type.String({ minLength: 1, maxLength: 998 }),
    html: Type.Optional(Type.String({ maxLength: BODY_OCTETS.html })),
    text: Type.Optional(Type.String({ maxLength: BODY_OCTETS.text })),
  },
  { additionalProperties: false, title: 'PreviewedMail' },
)

export function previewRoute(parts: PreviewParts): Route {
  const { send, describeRoute, hasWorkspace } = parts
  return adminRoute({
    method: 'POST',
    path: '/messages/preview',
    access: { permission: 'email:send', scope: 'query' },
    operationId: 'previewMessage',
    chapter: 'Messages',
    summary: 'Preview a mail and its route.',
    query: Type.Object(
      { workspace_id: Type.String({ minLength: 1, maxLength: 64 }) },
      { additionalProperties: false },
    ),
    body: Body,
    bodyLimit: SEND_BODY_LIMIT,
    isReadOnly: true,
    response: PreviewSchema,
    errors: ['not_found', 'domain_invalid', 'no_content', 'conflict'],
    async handle({ query: { workspace_id: workspaceId }, body }) {
      if (!(await hasWorkspace(send.database.reader, workspaceId)))
        throw new AppError('not_found', `no workspace ${workspaceId}`, { path: 'workspace_id' })
      const to = parseAddress(body.to)
      if (!to) throw new AppError('validation_error', `${body.to} is not a valid address`, { path: 'to' })
      const mail = octetsToText(await composed(parts, workspaceId, to.address, body))
      return { mail, route: [...(await describeRoute(addressDomain(to.address)))] }
    },
  })
}

async function composed(
  { send, domains, returnPath, composer }: PreviewParts,
  workspaceId: string,
  recipient: string,
  { from_email: fromEmail, subject: line, ...written }: Static<typeof Body>,
): Promise<Buffer> {
  if (written.html === undefined && written.text === undefined)
    throw new AppError('no_content', 'give html or text')
  const workspace = await send.senders.workspace(workspaceId)
  const asked = withWorkspaceSender(readSenderFields({ from_email: fromEmail }), workspace)
  const { from, replyTo, signingDomainId } = await send.senders.sender(workspace, asked)
  const subject = validText(line, 'subject', 'subject')
  const texts = await readTexts(written, undefined, { renderQueue: send.renderQueue, workspaceId })
  const content = await prepareContent(workspace, { subject, ...texts })
  const messageId = send.newId()
  const keys = signingDomainId === null ? [] : [signingDomainId]
  const job = {
    messageId,
    workspaceId,
    recipient,
    attempt: 1,
    acceptedAt: send.clock.now(),
    envelopeSender: returnPath(messageId, recipient),
    content: { kind: 'composed' as const, from, ...given({ replyTo }), ...content },
    signingKeys: [...(await readSigningKeys(send.database.reader, keys, domains.seal)).values()].flat(),
  }
  const outcome = await composer.deliver(job, new AbortController().signal)
  if (outcome.kind === 'delivered' && outcome.captured) return Buffer.from(outcome.captured)
  throw new AppError('conflict', `the mail cannot be composed: ${outcome.summary}`)
}
