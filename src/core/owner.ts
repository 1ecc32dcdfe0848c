/**
 * The owner of stored data: a workspace, its sandbox, or the server itself.
 *
 * Columns and fields named `owner` or `workspace_id` hold its id. The server owns the domain of the shared sending address and the mail it
 * writes itself: forwarded mail to postmaster@. No workspace has the server's id, so none of that shows up in the
 * keys, limits, logs or lists of a workspace. The id is stored and must not change.
 */

export const APPLIANCE = 'system'

export function isAppliance(owner: string): boolean {
  return owner === APPLIANCE
}
