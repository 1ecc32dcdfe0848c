/** The public profile of a workspace: what visitors of its public pages see. */
import type { Queries } from '../db/database.js'
import type { Sender } from '../http/public/public-route.js'
import { findActingWorkspace } from './workspace-store.js'

export interface PublicSender {
  readonly sender: Sender
  readonly isSandbox: boolean
}

/** @param workspaceId a sandbox's id for a sandbox @returns undefined if the workspace was removed */
export async function findPublicSender(db: Queries, workspaceId: string): Promise<PublicSender | undefined> {
  const workspace = await findActingWorkspace(db, workspaceId)
  if (!workspace) return undefined
  const { id, liveId, name, companyName, companyAddress, brandColor } = workspace
  const sender = { name: companyName ?? name, address: companyAddress ?? '', color: brandColor }
  return { sender, isSandbox: id !== liveId }
}
