/**
 * Who a mail is from: the contract's From rules.
 *
 *   domain verified here          From is the address asked for, signed by its domain
 *   domain added, not verified    domain_invalid
 *   domain not added here         From is the appliance's shared address, and the address asked for becomes Reply-To
 *
 * In a sandbox "here" is the sandbox and, behind it, its live workspace: what is tried out is the mail that would be sent.
 * Called by the REST sends for their fields, and by submission for who wrote a message. Fails: AppError.
 */
import { toUSVString } from 'node:util'
import type { ActingWorkspace, Workspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import { SYSTEM_OWNER } from '../core/owner.js'
import type { Queries } from '../db/database.js'
import { findSendingDomain } from '../deliverability/domains/domain-store.js'
import { addressDomain, type NamedAddress } from '../mail/address.js'
import { readNamedAddress, toNamedAddress } from '../mail/named-address.js'
import { invalidField, refuseControls } from './rest/field-fault.js'

/** Characters of from_name, and of the name in from_email. */
const MOST_NAME = 100

export interface SenderRequest {
  readonly from_email?: string
  readonly from_name?: string
  readonly reply_to?: string
}

export interface Sender {
  readonly from: NamedAddress
  readonly replyTo?: NamedAddress
  /** Whose DKIM keys sign. */
  readonly signingDomainId: string | null
}

/** What is told of who sends: nothing where it is who was asked for. */
export function shownSender({ from }: Sender, asked: { readonly fromAddress: string }): { from?: string } {
  return from.address === asked.fromAddress ? {} : { from: from.address }
}

/** What the request itself says of the sender, each field checked. */
export interface SenderFields {
  readonly fromAddress: string | undefined
  readonly name: string | undefined
  readonly replyTo: NamedAddress | undefined
}

/** @throws AppError validation_error */
export function readSenderFields(request: SenderRequest): SenderFields {
  const { from_name: fromName, reply_to: replyTo, from_email: fromEmail } = request
  if (fromName !== undefined) refuseControls(fromName, 'from_name')
  const from = fromEmail === undefined ? undefined : readAnswerable(fromEmail, 'from_email')
  if (from?.name !== undefined && from.name.length > MOST_NAME)
    throw invalidField('from_email', `from_email has a name of more than ${MOST_NAME} characters`)
  return {
    fromAddress: from?.address,
    name: fromName === undefined ? from?.name : toUSVString(fromName),
    replyTo: replyTo === undefined ? undefined : readAnswerable(replyTo, 'reply_to'),
  }
}

/** Fills in the workspace's defaults. @throws AppError missing_from_email */
export function withWorkspaceSender(fields: SenderFields, workspace: Workspace) {
  const { defaultFromEmail, defaultFromName } = workspace
  const fromAddress =
    fields.fromAddress ??
    (defaultFromEmail === null ? undefined : readAnswerable(defaultFromEmail, 'from_email').address)
  if (fromAddress === undefined)
    throw new AppError('missing_from_email', 'give from_email, or set a default in the workspace', {
      path: 'from_email',
    })
  return { ...fields, fromAddress, name: fields.name ?? defaultFromName ?? undefined }
}

/** Whoever answers may have no SMTPUTF8, and the header of a mail is ASCII: so has to be what stands before the @. */
function readAnswerable(text: string, field: string): NamedAddress {
  const mailbox = readNamedAddress(text)
  if ('fault' in mailbox) throw invalidField(field, `${field} ${mailbox.fault}`)
  if (mailbox.needsSmtpUtf8) throw invalidField(field, `${field} must be ASCII before the @`)
  return toNamedAddress(mailbox)
}

/**
 * @param sharedAddress `mta.shared_address`; empty when there is none
 * @throws AppError domain_invalid
 */
export async function resolveSender(
  db: Queries,
  workspace: ActingWorkspace,
  asked: ReturnType<typeof withWorkspaceSender>,
  sharedAddress: string,
): Promise<Sender> {
  const { fromAddress, replyTo } = asked
  const name = asked.name === undefined || asked.name === '' ? {} : { name: asked.name }
  const domain = await findOwnDomain(db, workspace, addressDomain(fromAddress))
  if (domain) {
    if (domain.verifiedAt === null)
      throw new AppError('domain_invalid', `${domain.domain} is not verified yet`, { path: 'from_email' })
    return {
      from: { ...name, address: fromAddress },
      ...(replyTo ? { replyTo } : {}),
      signingDomainId: domain.id,
    }
  }
  if (sharedAddress === '')
    throw new AppError(
      'domain_invalid',
      `add and verify ${addressDomain(fromAddress)} first: there is no shared sending address`,
      { path: 'from_email' },
    )
  const shared = await findSendingDomain(db, SYSTEM_OWNER, addressDomain(sharedAddress))
  return {
    from: { ...name, address: sharedAddress },
    replyTo: replyTo ?? { ...name, address: fromAddress },
    signingDomainId: shared?.id ?? null,
  }
}

async function findOwnDomain(db: Queries, { id, liveId }: ActingWorkspace, name: string) {
  const domain = await findSendingDomain(db, id, name)
  return domain || id === liveId ? domain : findSendingDomain(db, liveId, name)
}
