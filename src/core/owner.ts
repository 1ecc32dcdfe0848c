/**
 * Owner of what belongs to no workspace: the domain of the shared sending address, and the mail that the appliance itself
 * writes (reports to submitters, mail to postmaster@ that is forwarded).
 *
 * Stands where a workspace's id stands; no workspace has this id, so nobody's key sees any of it.
 */
export const SYSTEM_OWNER = 'system'
