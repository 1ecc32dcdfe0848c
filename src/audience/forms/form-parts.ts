/** Dependencies of forms, from the composition root. Holds no logic. */
import type { Queries, Tx } from '../../db/database.js'
import type { Sender } from '../../http/public/public-route.js'
import type { LinkKeys } from '../../mail/links/link-keys.js'
import type { Log } from '../../world/log.js'
import type { AudienceParts } from '../audience-parts.js'

/** A mail that its recipient requested. */
export interface RequestedMail {
  readonly to: string
  readonly subject: string
  readonly html: string
  readonly text: string
}

/** Sends in the caller's transaction, outside the workspace's sending limits. */
export type SendRequested = (tx: Tx, mail: RequestedMail) => Promise<void>

/** A form's workspace, as visitors see it. */
export interface FormOwner {
  readonly sender: Sender
  readonly isSandbox: boolean
}

export interface FormParts extends AudienceParts {
  readonly log: Log
  readonly linkKeys: LinkKeys
  /** Without a trailing slash. */
  readonly publicUrl: string
  /** @returns undefined if the workspace was removed */
  readonly findPublicSender: (db: Queries, workspaceId: string) => Promise<FormOwner | undefined>
  /**
   * Looks up the workspace's sender before the transaction begins; the result sends.
   *
   * @throws AppError missing_from_email, domain_invalid, unavailable, workspace_not_found
   */
  readonly openRequestedMail: (workspaceId: string) => Promise<SendRequested>
}

/** @param publicUrl without a trailing slash */
export function formUrl(publicUrl: string, formId: string): string {
  return `${publicUrl}/f/${formId}`
}
