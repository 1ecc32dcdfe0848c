/**
 * Resolves a mail's From address by the contract's rules.
 *
 *   domain verified               From is the requested address, signed by its domain
 *   domain added, not verified    domain_invalid
 *   domain unknown                From is the appliance's shared address; the requested address becomes Reply-To
 *
 * A sandbox falls back to its live workspace's domains, so that a test shows what live mail would look like.
 * Called by the REST sends and SMTP submission. Fails: AppError.
 */
import type { ActingWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { Queries } from '../db/database.js'
import { findApplianceDomain, findSendingDomain } from '../deliverability/domains/domain-store.js'
import { addressDomain, type NamedAddress } from '../mail/address.js'

/** The sender a request or message names. */
export interface Author {
  readonly fromAddress: string
  readonly name: string | undefined
  readonly replyTo?: NamedAddress | undefined
}

/** The sender the mail gets. */
export interface Sender {
  readonly from: NamedAddress
  readonly replyTo?: NamedAddress
  /** The domain whose DKIM keys sign. */
  readonly signingDomainId: string | null
}

/** The `from` of an API response: only set if it differs from the requested one. */
export function shownSender({ from }: Sender, asked: Author): { from?: string } {
  return from.address === asked.fromAddress ? {} : { from: from.address }
}

/**
 * @param sharedAddress `mta.shared_address`; empty if unset
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
      `${addressDomain(fromAddress)} is not a verified domain and this server has no shared sending address: add and verify the domain`,
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
