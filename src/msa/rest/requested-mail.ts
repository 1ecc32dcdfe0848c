/**
 * Mail that somebody's own act asked for, such as the one that confirms a subscription: from a workspace's default sender, through the
 * door, in the transaction of whoever asks.
 *
 * Handed by the composition root to floors below, which know no door. Such mail is never marketing, whatever its workspace says: it
 * answers a request. Neither opens nor clicks are followed. It does not count against the workspace's hourly and daily limits, which
 * strangers could use up; whoever asks for it bounds it (`audience/forms/form-allowance.ts`).
 * Fails: AppError missing_from_email, domain_invalid, workspace_not_found, unavailable when it is opened.
 */
import type { Tx } from '../../db/database.js'
import type { SendParts } from './send-email.js'
import { withWorkspaceSender } from './fields/sender-fields.js'
import { submitAll } from '../submit.js'

export interface RequestedMail {
  readonly to: string
  readonly subject: string
  readonly html: string
  readonly text: string
}

const NO_FIELDS = { fromAddress: undefined, name: undefined, replyTo: undefined }

/** Before the transaction: who it is from is looked up beside it. */
export async function openRequestedMail(
  parts: SendParts,
  workspaceId: string,
): Promise<(tx: Tx, mail: RequestedMail) => Promise<void>> {
  parts.database.storage.requireRoom()
  const workspace = { ...(await parts.senders.workspace(workspaceId)), isMarketing: false }
  const sender = await parts.senders.sender(workspace, withWorkspaceSender(NO_FIELDS, workspace))
  const isSandbox = workspace.liveId !== workspace.id
  return async (tx, { to, ...mail }) => {
    const content = { id: parts.newId(), trackOpens: false, trackClicks: false, ...sender, ...mail }
    await submitAll(
      tx,
      parts,
      { workspace, isSandbox, isOutsideLimits: true, submissions: [{ content, to: [to] }] },
      parts.clock.now(),
    )
  }
}
