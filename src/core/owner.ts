/**
 * Whose something is: a workspace's, or the appliance's own.
 *
 * Everything that is stored names its owner by an id, in columns and fields called `owner` or `workspace_id`. Nearly always that is a
 * workspace or its sandbox. The appliance itself owns the domain of the shared sending address, and the mail that it writes: reports
 * to submitters, mail to postmaster@ that is forwarded. No workspace has its id, so no key, limit, log or list of a workspace ever
 * comes upon any of that; only what names the appliance does. In the database its id is what it always was.
 */

export const APPLIANCE = 'system'

export function isAppliance(owner: string): boolean {
  return owner === APPLIANCE
}
