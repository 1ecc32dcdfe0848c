/**
 * Resolves a mail's From address by the contract's rules, and caches the results for a second.
 *
 *   domain verified               From is the requested address, signed by its domain
 *   domain added, not verified    domain_invalid
 *   domain unknown                From is the appliance's shared address; the requested address becomes Reply-To
 *
 * A sandbox falls back to its live workspace's domains, so that a test shows what live mail would look like. Throws AppError.
 */
import { type ActingWorkspace, findActingWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import type { Database, Queries } from '../db/database.js'
import { findApplianceDomain, findSendingDomain } from '../deliverability/domains/domain-store.js'
import { addressDomain, type NamedAddress } from '../mail/address.js'
import { TtlCache } from '../core/ttl-cache.js'
import { watchOf } from '../db/changes.js'
import type { Clock } from '../world/time/clock.js'

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

const REMEMBERED_MS = 1_000

export class SenderCache {
  private readonly reader: Queries
  private readonly sharedAddress: string
  private readonly workspaces: TtlCache<ActingWorkspace>
  private readonly senders: TtlCache<Sender>

  /** @param sharedAddress `mta.shared_address`; empty if unset */
  constructor(
    { reader, changes }: Pick<Database, 'reader' | 'changes'>,
    clock: Pick<Clock, 'monotonic'>,
    sharedAddress: string,
  ) {
    this.reader = reader
    this.sharedAddress = sharedAddress
    this.workspaces = new TtlCache(watchOf(changes, clock, ['workspaces']), REMEMBERED_MS)
    this.senders = new TtlCache(watchOf(changes, clock, ['workspaces', 'domains']), REMEMBERED_MS)
  }

  /** @throws AppError workspace_not_found */
  workspace(id: string): Promise<ActingWorkspace> {
    return this.workspaces.get(id, async () => {
      const found = await findActingWorkspace(this.reader, id)
      if (!found) throw new AppError('workspace_not_found', "the key's workspace no longer exists")
      return found
    })
  }

  /** As `sender`, by what the caller's transaction sees. @throws AppError domain_invalid */
  async check(db: Queries, workspace: ActingWorkspace, author: Author): Promise<void> {
    await resolveSender(db, workspace, author, this.sharedAddress)
  }

  /** @throws AppError domain_invalid */
  async sender(workspace: ActingWorkspace, { fromAddress, name, replyTo }: Author): Promise<Sender> {
    const asked = { fromAddress, name, replyTo: undefined }
    // The length keeps an address and a name from running into another pair's key.
    const key = `${workspace.id} ${fromAddress.length} ${fromAddress}${name ?? ''}`
    const sender = await this.senders.get(key, () =>
      resolveSender(this.reader, workspace, asked, this.sharedAddress),
    )
    // Reply-To varies between mails and does not affect the decision, so it is not part of the key.
    return replyTo ? { replyTo, from: sender.from, signingDomainId: sender.signingDomainId } : sender
  }
}
