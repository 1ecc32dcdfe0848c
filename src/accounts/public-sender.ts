/**
 * A workspace as the visitors of its public pages see it.
 *
 * Called by whatever makes such pages, and handed by the composition root to those that know no workspaces.
 * Fails: with undefined for one that was removed.
 */
import type { Queries } from '../db/database.js'
import type { Sender } from '../http/public/public-route.js'
import { findActingWorkspace } from './workspace-store.js'

export interface PublicSender {
  readonly sender: Sender
  readonly isSandbox: boolean
}

/** @param workspaceId of a sandbox the sandbox's */
export async function findPublicSender(db: Queries, workspaceId: string): Promise<PublicSender | undefined> {
  const workspace = await findActingWorkspace(db, workspaceId)
  if (!workspace) return undefined
  const { id, liveId, name, companyName, companyAddress, brandColor } = workspace
  const sender = { name: companyName ?? name, address: companyAddress ?? '', color: brandColor }
  return { sender, isSandbox: id !== liveId }
}
