/** Contact lookup needed by analytics, injected by the composition root. */
import type { Queries } from '../../db/database.js'

export interface Contact {
  readonly id: string
  readonly email: string
}

/** A contact of this workspace that is not deleted. Addresses compare case-insensitively. */
export type FindContact = (
  db: Queries,
  workspaceId: string,
  by: { readonly id: string } | { readonly email: string },
) => Promise<Contact | undefined>
