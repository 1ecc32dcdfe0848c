/**
 * Whether an account is in the hands of the holder of its address, and what happens if that was never proved.
 *
 * The operator who created an account for another person may have opened its link and kept a password, a passkey or a token. Before such an account
 * becomes able to do more, everything that was set up in it is removed. Links that were mailed stay: nobody but the mailbox has them.
 */
import type { Actor } from '../../core/actor.js'
import type { Tx } from '../../db/database.js'
import { recordActivity } from '../../events/activity-store.js'
import { isGranted, rolePermissions, type RoleGrant } from '../../http/roles.js'
import type { Clock } from '../../world/time/clock.js'
import {
  countRecoveryCodes,
  deletePasskeys,
  replaceRecoveryCodes,
  updateOperator,
  type Operator,
} from './operator-store.js'
import { recordedAt } from './privileges.js'
import { deleteHandedLinks, deleteSessions, deleteTokens } from './session-store.js'

/** Whether the role allows anything in its place that the grants do not. */
export function widens(grants: readonly RoleGrant[], { workspaceId, role }: RoleGrant): boolean {
  return [...rolePermissions(role)].some(permission => !isGranted(grants, permission, workspaceId))
}

export interface RemovedBy {
  readonly clock: Pick<Clock, 'now'>
  readonly actor: Actor
  /** Of the holder. */
  readonly keptSession?: string
}

/**
 * Removes password, authenticator app, recovery codes, passkeys, tokens, sessions and handed links. Accounts of OpenID providers stay linked.
 *
 * @returns whether there was anything
 */
export async function removeUnprovedAccess(
  tx: Tx,
  operator: Operator,
  { clock, actor, keptSession }: RemovedBy,
): Promise<boolean> {
  const { id, email: subject, passwordHash, totpSecret } = operator
  const removed = {
    password: passwordHash !== null,
    totp: totpSecret !== null,
    recovery_codes: await countRecoveryCodes(tx.db, id),
    passkeys: await deletePasskeys(tx.db, id),
    tokens: await deleteTokens(tx.db, id),
    sessions: await deleteSessions(tx.db, id, keptSession),
    links: await deleteHandedLinks(tx.db, id),
  }
  if (!Object.values(removed).some(Boolean)) return false
  await updateOperator(tx.db, id, { passwordHash: null, totpSecret: null, totpStep: 0 })
  await replaceRecoveryCodes(tx.db, id, [])
  await recordActivity(tx, { workspaceId: recordedAt(operator), actor }, clock.now(), {
    action: 'operator.credentials_removed',
    subject,
    details: { reason: 'the address was not proved', ...removed },
  })
  return true
}
