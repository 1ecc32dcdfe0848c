/** What analytics ask of contacts. The composition root hands in who answers. */
import type { Queries } from '../../db/database.js'

export interface Contact {
  readonly id: string
  readonly email: string
}

/** Of this workspace and not deleted, else undefined. Addresses compare without case. */
export type FindContact = (
  db: Queries,
  workspaceId: string,
  by: { readonly id: string } | { readonly email: string },
) => Promise<Contact | undefined>
