/**
 * Takes a message that came finished (SMTP submission) through the door: the same rules as the REST API's, applied to
 * what the message says of itself.
 *
 * Called at the end of DATA. The body is never touched here (footer and tracking are put in when it is delivered, `mta/render.ts`), and of the header only what `mail/relay/edit-header.ts` names;
 * bringing it to 7-bit and signing is the delivery's. Standards: RFC 6409 §5, §6, §8; RFC 5321 §4.4.
 * Fails: AppError with the codes of the contract, which the error table has the SMTP replies for; 554 5.4.6 for a loop.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { given } from '../../core/given.js'
import { AppError } from '../../core/errors.js'
import type { Principal } from '../../http/principal.js'
import { CONTENT_FIELDS } from '../../mail/compose/compose.js'
import { readControls, type RelayControls } from '../../mail/relay/controls.js'
import { editRelayedHeader, type HeaderEdits } from '../../mail/relay/edit-header.js'
import { hasDkimSignature, protectionOf, readReadableParts } from '../../mail/relay/readable-parts.js'
import { receivedField, transmissionProtocol } from '../../mail/relay/received-field.js'
import { readRelayedHeader, assertNoFaults, type RelayedHeader } from '../../mail/relay/relayed-header.js'
import { SmtpRefusal, type MailCommand, type SessionFacts } from '../../smtp/receiver.js'
import type { DsnParameters, SubmittedRecipient } from '../mail-submission.js'
import { findAskedTemplate, mergingOf, requireFilledSubject, requireReadable } from '../merged-content.js'
import { authorOf } from './relayed-author.js'
import type { SenderCache } from '../sender-cache.js'
import type { SubmitParts } from '../submit-parts.js'
import type { SubmissionGatherer } from './submission-gatherer.js'

export interface RelayMailParts extends SubmitParts {
  readonly senders: SenderCache
  readonly gatherer: SubmissionGatherer
  /** Our own name, for Received and Message-ID. */
  readonly hostname: string
}

export interface RelayRequest {
  readonly principal: Principal
  /** Not by its network alone. */
  readonly isLoggedIn: boolean
  readonly session: SessionFacts
  readonly mail: MailCommand
  /** As given, each found to be an address. */
  readonly recipients: readonly string[]
  /** By recipient; nothing of those for whom nothing was asked. */
  readonly dsn: ReadonlyMap<string, DsnParameters>
  readonly contentId: string
  /** The message, or its beginning where the rest is stored under `contentId`. */
  readonly firstPart: Buffer
  /** Octets of the stored rest. */
  readonly laterOctets: number
}

/** Received fields with which a message is taken to go round in circles. */
const MOST_HOPS = 50

const NO_TRACKING = { opens: false, clicks: false }

const PROTECTED_NOTE = '; signed or encrypted by its author, so nothing was added to it'

/** Ids in one reply; a list of a thousand would be no line any more. */
const MOST_IDS = 12

/** @returns the text of the reply: what the message is known as */
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
    ...{ trackOpens: false, trackClicks: false },
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

/** RFC 5321 §6.3. A host that relays to us what we route to it would do so for ever. */
function refuseLoop({ fields }: RelayedHeader): void {
  if (fields.filter(({ name }) => name === 'received').length >= MOST_HOPS)
    throw new SmtpRefusal(554, '5.4.6', `The message has gone through ${MOST_HOPS} hosts or more: a loop`)
}

/** Nothing that was asked for is silently left out. */
function checkedControls(controls: RelayControls): RelayControls {
  if (controls.templateId !== undefined) return controls
  if (controls.mergeData !== undefined)
    throw refused('X-Postroad-Data', 'is of use with X-Postroad-Template only')
  return controls
}

/**
 * What a finished mail gets that asks for footer or tracking: nothing where its author signed or encrypted it, of which the
 * submitter is told. What lies behind the first part of it is looked at when it is delivered.
 */
function additionsTo(
  workspace: ActingWorkspace,
  header: RelayedHeader,
  { footer: hasFooter = false, track: { opens, clicks } = NO_TRACKING }: RelayControls,
  message: Buffer,
) {
  const isAsked = hasFooter || opens || clicks
  if (isAsked && isProtected(header, message)) return { note: PROTECTED_NOTE }
  // An author's own DKIM signature may cover that there are no such fields.
  if (!isAsked && (!workspace.isMarketing || hasDkimSignature(header))) return {}
  const tracking = { trackOpens: opens, trackClicks: clicks }
  const merging = mergingOf(workspace, { source: { subject: '' }, data: undefined, hasFooter, ...tracking })
  return { content: { ...tracking, ...given({ merging }) } }
}

function isProtected(header: RelayedHeader, message: Buffer): boolean {
  return protectionOf(header, message) !== undefined || readReadableParts(message)?.isProtected === true
}

/**
 * What a mail says that is made of a template: its html behind the header that came, in place of the body, with the footer unless
 * that was asked to be left out.
 */
async function writtenFor(
  { database }: RelayMailParts,
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
    throw refused(field, 'stands in place of a short text; attachments and anything else would be lost')
  const { subject } = header
  requireReadable(subject, 'subject', 'Subject')
  requireFilledSubject(workspace, subject, data, 'Subject')
  const { html } = template
  const { opens: trackOpens = workspace.trackOpens, clicks: trackClicks = workspace.trackClicks } =
    track ?? {}
  const tracking = { trackOpens, trackClicks }
  const merging = mergingOf(workspace, { source: { subject, html }, data, hasFooter, ...tracking })
  return { html, templateId: template.id, ...tracking, ...given({ merging }) }
}

function refused(path: string, why: string): AppError {
  return new AppError('validation_error', `${path} ${why}`, { path })
}

/** What every message gets that lacks it. */
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
  const ids = submitted.slice(0, MOST_IDS).map(({ messageId }) => messageId)
  const more = submitted.length - ids.length
  return `Accepted as ${ids.join(' ')}${more > 0 ? ` and ${more} more` : ''}`
}
