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
import type { ActingWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { Queries } from '../db/database.js'
import { findApplianceDomain, findSendingDomain } from '../deliverability/domains/domain-store.js'
import { addressDomain, type NamedAddress } from '../mail/address.js'

/** Who a mail is to be from, as it was asked for. */
export interface Author {
  readonly fromAddress: string
  readonly name: string | undefined
  readonly replyTo?: NamedAddress | undefined
}

/** Who it is from. */
export interface Sender {
  readonly from: NamedAddress
  readonly replyTo?: NamedAddress
  /** Whose DKIM keys sign. */
  readonly signingDomainId: string | null
}

/** What is told of who sends: nothing where it is who was asked for. */
export function shownSender({ from }: Sender, asked: Author): { from?: string } {
  return from.address === asked.fromAddress ? {} : { from: from.address }
}

/**
 * @param sharedAddress `mta.shared_address`; empty when there is none
 * @throws AppError domain_invalid
 */
export async function resolveSender(
  db: Queries,
  workspace: ActingWorkspace,
  asked: Author,
  sharedAddress: string,
): Promise<Sender> {
  const { fromAddress, replyTo } = asked
  const name = asked.name === '' ? undefined : asked.name
  const domain = await findOwnDomain(db, workspace, addressDomain(fromAddress))
  if (domain) {
    if (domain.verifiedAt === null)
      throw new AppError('domain_invalid', `${domain.domain} is not verified yet`, { path: 'from_email' })
    return {
      from: named(name, fromAddress),
      signingDomainId: domain.id,
      ...(replyTo ? { replyTo } : {}),
    }
  }
  if (sharedAddress === '')
    throw new AppError(
      'domain_invalid',
      `add and verify ${addressDomain(fromAddress)} first: there is no shared sending address`,
      { path: 'from_email' },
    )
  const shared = await findApplianceDomain(db, addressDomain(sharedAddress))
  return {
    from: named(name, sharedAddress),
    replyTo: replyTo ?? named(name, fromAddress),
    signingDomainId: shared?.id ?? null,
  }
}

function named(name: string | undefined, address: string): NamedAddress {
  return name === undefined ? { address } : { name, address }
}

async function findOwnDomain(db: Queries, { id, liveId }: ActingWorkspace, name: string) {
  const domain = await findSendingDomain(db, id, name)
  return domain || id === liveId ? domain : findSendingDomain(db, liveId, name)
}
