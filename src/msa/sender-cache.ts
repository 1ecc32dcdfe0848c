/**
 * Caches the workspaces and senders of submissions for a second, so that a burst of mail does not repeat the queries.
 *
 * Used by `relay-mail.ts` and the REST sends. Changed limits, defaults and domains take effect at once (`core/ttl-cache.ts`).
 */
import { findActingWorkspace, type ActingWorkspace } from '../accounts/workspace-store.js'
import { AppError } from '../core/errors.js'
import { TtlCache, type Watch } from '../core/ttl-cache.js'
import type { Queries } from '../db/database.js'
import { resolveSender, type Author, type Sender } from './sender.js'

const REMEMBERED_MS = 1_000

export class SenderCache {
  private readonly reader: Queries
  private readonly sharedAddress: string
  private readonly workspaces: TtlCache<ActingWorkspace>
  private readonly senders: TtlCache<Sender>

  /** @param sharedAddress `mta.shared_address`; empty if unset */
  constructor(reader: Queries, watch: Watch, sharedAddress: string) {
    this.reader = reader
    this.sharedAddress = sharedAddress
    this.workspaces = new TtlCache(watch, REMEMBERED_MS)
    this.senders = new TtlCache(watch, REMEMBERED_MS)
  }

  /** @throws AppError workspace_not_found */
  workspace(id: string): Promise<ActingWorkspace> {
    return this.workspaces.get(id, async () => {
      const found = await findActingWorkspace(this.reader, id)
      if (!found) throw new AppError('workspace_not_found', "the key's workspace no longer exists")
      return found
    })
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
