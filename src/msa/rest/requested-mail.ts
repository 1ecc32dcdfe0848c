/**
 * Submits mail that a person's own action requested, such as a subscription confirmation, from the workspace's default sender.
 *
 * Injected by the composition root into modules that may not import message intake. Such mail is never marketing and never tracked.
 * It is exempt from the workspace's hourly and daily limits, which strangers could otherwise exhaust; the caller bounds it by shares of
 * the workspace and the mailbox (`audience/forms/form-allowance.ts`).
 * Fails: AppError missing_from_email, domain_invalid, workspace_not_found, unavailable on opening.
 */
import type { RequestedMailer } from '../../audience/forms/form.js'
import { readsAsLink } from '../../audience/forms/name-in-mail.js'
import { addressDomain } from '../../mail/address.js'
import type { SendParts } from './send-email.js'
import { withWorkspaceSender } from './address-fields.js'
import { submitAll } from '../submit.js'

const NO_FIELDS = { name: undefined, replyTo: undefined }

/**
 * Opened before the transaction, since the sender lookup uses the reader.
 *
 * @param fallbackFrom From of a workspace without a default sender; without one such a workspace sends nothing
 */
export async function openRequestedMail(
  parts: SendParts,
  workspaceId: string,
  fallbackFrom?: string,
): Promise<RequestedMailer> {
  parts.database.storage.requireRoom()
  const workspace = { ...(await parts.senders.workspace(workspaceId)), isMarketing: false }
  const fromAddress = workspace.defaultFromEmail === null ? fallbackFrom : undefined
  const sender = await parts.senders.sender(
    workspace,
    withWorkspaceSender({ ...NO_FIELDS, fromAddress }, workspace),
  )
  const { name, address } = sender.from
  // Visitors choose the recipients, so the display name must not advertise either (`audience/forms/name-in-mail.ts`).
  const from = name !== undefined && readsAsLink(name, addressDomain(address)) ? { address } : sender.from
  const isSandbox = workspace.liveId !== workspace.id
  return {
    fromDomain: addressDomain(address),
    async send(tx, { to, ...mail }) {
      const content = { id: parts.newId(), trackOpens: false, trackClicks: false, ...sender, from, ...mail }
      await submitAll(
        tx,
        parts,
        { workspace, isSandbox, isOutsideLimits: true, submissions: [{ content, to: [to] }] },
        parts.clock.now(),
      )
    },
  }
}
