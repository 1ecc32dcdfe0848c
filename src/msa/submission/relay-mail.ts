/**
 * Submits a complete message received by SMTP, applying the REST API's rules to what its header says.
 *
 * Called at the end of DATA. Leaves the body unchanged (`mta/render.ts` adds footer and tracking at delivery) and edits only the
 * header fields that `mail/relay/edit-header.ts` names; 7-bit encoding and signing also happen at delivery.
 * Standards: RFC 6409 §5, §6, §8; RFC 5321 §4.4.
 * Fails: AppError with the contract's codes, which the error table maps to SMTP replies; 554 5.4.6 for a loop.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { validText } from '../../content/merge/merge-text.js'
import { mergingOf, prepareContent } from '../../content/preparation/prepare-content.js'
import type { RenderQueue } from '../../content/rendering/render-queue.js'
import { findAskedTemplate } from '../../content/templates/asked-template.js'
import { given } from '../../core/given.js'
import { AppError } from '../../core/errors.js'
import type { Principal } from '../../http/principal.js'
import { CONTENT_FIELDS } from '../../mail/compose/compose.js'
import { readControls, type RelayControls } from '../../mail/relay/controls.js'
import {
  editRelayedHeader,
  type HeaderEdits,
  receivedField,
  transmissionProtocol,
} from '../../mail/relay/edit-header.js'
import { hasDkimSignature, protectionOf, readReadableParts } from '../../mail/relay/readable-parts.js'
import {
  readRelayedHeader,
  assertNoFaults,
  type RelayedHeader,
  type RelayedMailbox,
} from '../../mail/relay/relayed-header.js'
import { SmtpRefusal, type MailCommand, type SessionFacts } from '../../smtp/receiver.js'
import type { DsnParameters, SubmittedRecipient, SubmitParts } from '../mail-submission.js'
import type { SenderCache, Sender } from '../sender.js'
import type { SubmissionGatherer } from '../submission-gatherer.js'
import type { NamedAddress } from '../../mail/address.js'

export interface RelayMailParts extends SubmitParts {
  readonly senders: SenderCache
  /** Absent where templates are short. */
  readonly renderQueue?: RenderQueue
  readonly gatherer: SubmissionGatherer
  /** This server's name, for Received and Message-ID. */
  readonly hostname: string
}

export interface RelayRequest {
  readonly principal: Principal
  /** False for a client trusted only by its network. */
  readonly isLoggedIn: boolean
  readonly session: SessionFacts
  readonly mail: MailCommand
  /** As given; each is a valid address. */
  readonly recipients: readonly string[]
  /** By recipient; only those with DSN parameters. */
  readonly dsn: ReadonlyMap<string, DsnParameters>
  readonly contentId: string
  /** The message, or its first part if the rest is stored under `contentId`. */
  readonly firstPart: Buffer
  /** Size of the stored rest, octets. */
  readonly laterOctets: number
}

/** Received fields at which a message counts as looping. */
const MAX_HOPS = 50

const NO_TRACKING = { opens: false, clicks: false }

const PROTECTED_NOTE = '; signed or encrypted by its author, so no footer or tracking was added'

/** Message ids in one reply; more would exceed the reply's line length. */
const MAX_IDS = 12

/** @returns the reply's text, with the message ids */
export async function relayMail(parts: RelayMailParts, request: RelayRequest): Promise<string> {
  const { principal, firstPart } = request
  const workspace = await parts.senders.workspace(principal.workspaceId)
  const header = readRelayedHeader(firstPart)
  assertNoFaults(header)
  refuseLoop(header)
  const controls = checkedControls(readControls(header))
  const written = await writtenFor(parts, workspace, header, controls, request)
  const added = written ? {} : additionsTo(workspace, header, controls, firstPart)
  const { sender, edits } = await authorOf(parts.senders, workspace, header)
  const removals = [...(edits.removals ?? []), ...(written ? CONTENT_FIELDS : [])]
  const edited = editRelayedHeader(header, { ...addedBy(parts, request), ...edits, removals })
  const message = written ? edited : Buffer.concat([edited, firstPart.subarray(header.bodyStart)])
  const content = {
    id: request.contentId,
    ...sender,
    subject: header.subject,
    relayed: {
      firstPart: message,
      size: message.length + request.laterOctets,
      submitter: request.mail.address,
      ...given({ ret: request.mail.ret, envid: request.mail.envid }),
    },
    trackOpens: false,
    trackClicks: false,
    ...(written ?? added.content),
    ...(controls.tags.length === 0 ? {} : { tags: controls.tags }),
    submittedBy: { keyId: principal.keyId, peer: request.session.peerAddress },
  }
  const submitted = await parts.gatherer.submit({
    workspace,
    isSandbox: principal.isSandbox,
    submission: { content, to: request.recipients, dsn: request.dsn, key: principal },
  })
  return `${replyText(submitted)}${added.note ?? ''}`
}

/** RFC 5321 §6.3. */
function refuseLoop({ fields }: RelayedHeader): void {
  if (fields.filter(({ name }) => name === 'received').length >= MAX_HOPS)
    throw new SmtpRefusal(554, '5.4.6', `Routing loop: the message has ${MAX_HOPS} or more Received fields`)
}

/** Rejects a control field that would otherwise be ignored. */
function checkedControls(controls: RelayControls): RelayControls {
  if (controls.templateId !== undefined) return controls
  if (controls.mergeData !== undefined) throw refused('X-Postroad-Data', 'requires X-Postroad-Template')
  return controls
}

/**
 * Footer and tracking of a complete message. A signed or encrypted one gets neither, and the reply says so. Only the first part is
 * checked here; delivery checks the rest.
 */
function additionsTo(
  workspace: ActingWorkspace,
  header: RelayedHeader,
  { footer: hasFooter = false, track: { opens, clicks } = NO_TRACKING }: RelayControls,
  message: Buffer,
) {
  const isAsked = hasFooter || opens || clicks
  if (isAsked && isProtected(header, message)) return { note: PROTECTED_NOTE }
  // The author's own DKIM signature may cover the absence of List-Unsubscribe fields.
  if (!isAsked && (!workspace.isMarketing || hasDkimSignature(header))) return {}
  const tracking = { trackOpens: opens, trackClicks: clicks }
  const merging = mergingOf(workspace, { isFilledIn: false, hasFooter, ...tracking })
  return { content: { ...tracking, ...given({ merging }) } }
}

function isProtected(header: RelayedHeader, message: Buffer): boolean {
  return protectionOf(header, message) !== undefined || readReadableParts(message)?.isProtected === true
}

/** Content made from a template: its html replaces the body behind the original header. Footer on by default. */
async function writtenFor(
  { database, renderQueue }: RelayMailParts,
  workspace: ActingWorkspace,
  header: RelayedHeader,
  { templateId, mergeData: data, footer: hasFooter = true, track }: RelayControls,
  { laterOctets }: RelayRequest,
) {
  const field = 'X-Postroad-Template'
  const template = await findAskedTemplate(database.reader, workspace, templateId, field)
  if (!template) return undefined
  const { value } = header.contentType
  if (laterOctets > 0 || (!value.startsWith('text/') && value !== 'multipart/alternative'))
    throw refused(field, 'replaces the message body, so the message must be a short text without attachments')
  const subject = validText(header.subject, 'subject', 'Subject')
  const tracking = { trackOpens: track?.opens, trackClicks: track?.clicks }
  return prepareContent(
    workspace,
    { subject, template, data, hasFooter, ...tracking, subjectPath: 'Subject' },
    { renderQueue, workspaceId: workspace.id },
  )
}

function refused(path: string, why: string): AppError {
  return new AppError('validation_error', `${path} ${why}`, { path })
}

/** Header fields added to every message that lacks them. */
function addedBy(
  { clock, hostname, newId }: RelayMailParts,
  { session, mail, contentId, isLoggedIn }: RelayRequest,
): HeaderEdits {
  const now = clock.now()
  return {
    received: receivedField({
      helo: session.heloName,
      peerAddress: session.peerAddress,
      hostname,
      protocol: transmissionProtocol({
        isEsmtp: session.isEsmtp,
        hasTls: session.tls !== undefined,
        isAuthenticated: isLoggedIn,
        smtpUtf8: mail.smtpUtf8,
      }),
      id: contentId,
      date: now,
      ...(session.tls ? { tls: session.tls } : {}),
    }),
    dateToAdd: now,
    messageIdToAdd: `${newId()}@${hostname}`,
  }
}

function replyText(submitted: readonly SubmittedRecipient[]): string {
  const ids = submitted.slice(0, MAX_IDS).map(({ messageId }) => messageId)
  const more = submitted.length - ids.length
  return `Accepted as ${ids.join(' ')}${more > 0 ? ` and ${more} more` : ''}`
}

export interface Submitter {
  readonly principal: Principal
  /** Trusted by its network, without a login. */
  readonly isTrusted: boolean
}

export interface RelayedAuthor {
  /** The From of the edited header, and whose keys sign. */
  readonly sender: Sender
  readonly edits: Pick<HeaderEdits, 'fromToSet' | 'senderToSet' | 'removals'>
}

export async function authorOf(
  senders: SenderCache,
  workspace: ActingWorkspace,
  { from, sender: named }: RelayedHeader,
): Promise<RelayedAuthor> {
  const [first] = from
  if (!first) throw new AppError('missing_from_email', 'the message has no From', { path: 'From' })
  const own: Sender[] = []
  for (const author of oneOfEachDomain(from)) {
    const sender = await senders.sender(workspace, asked(author, author === first ? first.name : undefined))
    if (!isSentBy(author, sender)) {
      const shared = await senders.sender(workspace, asked(author, first.name))
      return { sender: shared, edits: { fromToSet: shared.from } }
    }
    own.push(sender)
  }
  const signing = own[0] as Sender
  if (named === undefined || (await isOwn(senders, workspace, named))) return { sender: signing, edits: {} }
  // Some mail clients show Sender before From. A single author needs none.
  return {
    sender: signing,
    edits: from.length === 1 ? { removals: ['sender'] } : { senderToSet: toNamed(first) },
  }
}

/** The rules are per domain, and From may hold a thousand addresses. */
function oneOfEachDomain(from: readonly RelayedMailbox[]): readonly RelayedMailbox[] {
  const byDomain = new Map<string, RelayedMailbox>()
  for (const author of from)
    if (!byDomain.has(author.address.domain)) byDomain.set(author.address.domain, author)
  return [...byDomain.values()]
}

async function isOwn(
  senders: SenderCache,
  workspace: ActingWorkspace,
  mailbox: RelayedMailbox,
): Promise<boolean> {
  try {
    return isSentBy(mailbox, await senders.sender(workspace, asked(mailbox, undefined)))
  } catch (error) {
    if (error instanceof AppError && error.code === 'domain_invalid') return false
    throw error
  }
}

/** Whether the author was not replaced. The shared address as author counts as its own sender. */
function isSentBy({ address }: RelayedMailbox, { from }: Sender): boolean {
  return address.address.toLowerCase() === from.address.toLowerCase()
}

function asked({ address }: RelayedMailbox, name: string | undefined) {
  return { fromAddress: address.address, name }
}

function toNamed({ name, address }: RelayedMailbox): NamedAddress {
  return name === undefined ? { address: address.address } : { name, address: address.address }
}
