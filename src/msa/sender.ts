/**
 * Who a mail is from: the contract's From rules.
 *
 *   domain verified here          From is the address asked for, signed by its domain
 *   domain added, not verified    domain_invalid
 *   domain not added here         From is the appliance's shared address, and the address asked for becomes Reply-To
 *
 * In a sandbox "here" is the sandbox and, behind it, its live workspace: what is tried out is the mail that would be sent.
 */
import type { ActingWorkspace, Workspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import { SYSTEM_OWNER } from '../core/owner.js'
import type { Queries } from '../db/database.js'
import { findSendingDomain } from '../deliverability/domain-store.js'
import { addressDomain, parseNamedAddress, readAddress, type NamedAddress } from '../mail/address.js'
import { hasHeaderBreak } from '../mail/header-text.js'

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

/** What the request itself says of the sender, each field checked. */
export interface SenderFields {
  readonly fromAddress: string | undefined
  readonly name: string | undefined
  readonly replyTo: NamedAddress | undefined
}

/** @throws AppError validation_error */
export function readSenderFields(request: SenderRequest): SenderFields {
  if (request.from_name !== undefined && hasHeaderBreak(request.from_name))
    throw new AppError('validation_error', 'from_name contains control characters', { path: 'from_name' })
  const replyTo = request.reply_to === undefined ? undefined : parseNamedAddress(request.reply_to)
  if (request.reply_to !== undefined && !replyTo)
    throw new AppError('validation_error', 'reply_to is not an address', { path: 'reply_to' })
  const fromAddress = request.from_email === undefined ? undefined : readFromAddress(request.from_email)
  return { fromAddress, name: request.from_name, replyTo }
}

/** Fills in the workspace's defaults. @throws AppError missing_from_email */
export function withWorkspaceSender(fields: SenderFields, workspace: Workspace) {
  const { defaultFromEmail, defaultFromName } = workspace
  const fromAddress =
    fields.fromAddress ?? (defaultFromEmail === null ? undefined : readFromAddress(defaultFromEmail))
  if (fromAddress === undefined)
    throw new AppError('missing_from_email', 'give from_email, or set a default in the workspace', {
      path: 'from_email',
    })
  return { ...fields, fromAddress, name: fields.name ?? defaultFromName ?? undefined }
}

function readFromAddress(text: string): string {
  const address = readAddress(text)
  if ('fault' in address)
    throw new AppError('validation_error', `from_email ${address.fault}`, { path: 'from_email' })
  return address.address
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
