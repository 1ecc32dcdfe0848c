/**
 * The operator account of a person whom the OpenID provider vouches for, and its roles.
 *
 * Runs in the transaction of the sign-in. An account is found by issuer and subject; the first time by a verified address, if no other person
 * of that issuer is linked to it, so that whoever gets an address that was used before does not get the account. Otherwise it is created.
 * The provider's word proves the address. If that was not proved before, what was set up in the account is removed when it is linked, and before
 * groups give it a wider role (`../proof.ts`).
 * Roles from groups are replaced at each sign-in. A role given by hand takes precedence in its workspace and is never changed. Groups may
 * take the last owner away: the shell can always make another one.
 */
import { given } from '../../../core/given.js'
import type { Tx } from '../../../db/database.js'
import type { Services } from '../../../db/services.js'
import { recordActivity, type Activity } from '../../../events/activity-store.js'
import type { RoleGrant } from '../../../http/roles.js'
import { readAddress } from '../../../mail/address.js'
import type { Clock } from '../../../world/time/clock.js'
import {
  deleteRole,
  findOperator,
  insertOperator,
  putRole,
  updateOperator,
  type HeldRole,
  type Operator,
} from '../operator-store.js'
import { ownerOf, recordedAt } from '../privileges.js'
import { removeUnprovedAccess, widens } from '../proof.js'
import { deleteSessions, deleteSessionsBy, deleteTokens } from '../session-store.js'
import { findIdentity, hasIdentity, insertIdentity } from '../identity-store.js'
import type { Person } from './provider.js'

/** Why a person whom the provider vouches for cannot sign in. */
export type AccountRefusal = 'no_role' | 'email_unverified' | 'account_linked'

export type SettleParts = Pick<Services, 'clock' | 'newId'>

/** Where a person signs in or confirms. */
export interface Place {
  /** IP address. */
  readonly peer: string
  /** Id of the session that is being confirmed. */
  readonly session?: string
  /** Called if what was set up in the account was removed. */
  readonly onAccessRemoved?: () => void
}

/**
 * @param grants of the person's groups, at most one in a workspace
 * @returns why the person is refused; roles and sessions may have been withdrawn, so the transaction must commit
 */
export async function settleAccount(
  parts: SettleParts,
  tx: Tx,
  person: Person,
  grants: readonly RoleGrant[],
  place: Place,
): Promise<Operator | AccountRefusal> {
  const acts = new Acts(parts.clock, tx, place)
  const linkedId = await findIdentity(tx.db, person)
  const linked = linkedId === undefined ? undefined : await findOperator(tx.db, { id: linkedId })
  if (grants.length === 0) {
    if (linked) await withdraw(tx, linked, acts)
    return 'no_role'
  }
  const operator = linked ?? (await linkAccount(parts, tx, person, grants, acts))
  if (typeof operator === 'string') return operator
  if (linked?.provedAt === null && grants.some(grant => widens(linked.grants, grant)))
    await acts.prove(linked)
  await replaceRoles(tx, operator, grants, acts)
  return (await findOperator(tx.db, { id: operator.id })) ?? operator
}

async function linkAccount(
  { clock, newId }: SettleParts,
  tx: Tx,
  person: Person,
  grants: readonly RoleGrant[],
  acts: Acts,
): Promise<Operator | AccountRefusal> {
  const read = readAddress(person.email ?? '', { allowSingleLabel: true })
  if ('fault' in read || !person.isEmailVerified) return 'email_unverified'
  const email = read.address.toLowerCase()
  const existing = await findOperator(tx.db, { email })
  if (existing && (await hasIdentity(tx.db, existing.id, person.issuer))) return 'account_linked'
  const now = clock.now()
  const account = { id: newId(), email, name: person.name, createdAt: now, provedAt: now, grants: [] }
  if (!existing) await insertOperator(tx.db, account)
  const operator = existing ?? (await findOperator(tx.db, { email }))
  if (!operator) throw new Error('the account was not created')
  if (operator.provedAt === null) await acts.prove(operator)
  await insertIdentity(tx.db, operator.id, person)
  const details = { issuer: person.issuer, subject: person.subject }
  const where = recordedAt({ grants: [...operator.grants, ...grants] })
  if (!existing) await acts.record('operator.created', operator, details, where)
  else await acts.record('operator.identity_linked', operator, details, where)
  return operator
}

async function replaceRoles(
  tx: Tx,
  operator: Operator,
  grants: readonly RoleGrant[],
  acts: Acts,
): Promise<void> {
  const { id } = operator
  const held = new Map(operator.grants.map(grant => [grant.workspaceId, grant]))
  const given = new Set(grants.map(({ workspaceId }) => workspaceId))
  for (const grant of operator.grants)
    if (isFromGroups(grant) && !given.has(grant.workspaceId)) await takeRole(tx, operator, grant, acts)
  for (const grant of grants) {
    const before = held.get(grant.workspaceId)
    if (before && (!isFromGroups(before) || before.role === grant.role)) continue
    await putRole(tx.db, id, { ...grant, givenBy: 'oidc' })
    const details = { role: grant.role, before: before?.role ?? null }
    await acts.record('operator.role_set', operator, details, ownerOf(grant))
  }
}

/** Takes roles from groups away, and ends the access that rests on them. */
async function withdraw(tx: Tx, operator: Operator, acts: Acts): Promise<void> {
  const fromGroups = operator.grants.filter(isFromGroups)
  for (const grant of fromGroups) await takeRole(tx, operator, grant, acts)
  if (fromGroups.length < operator.grants.length) {
    await deleteSessionsBy(tx.db, operator.id, 'oidc')
    return
  }
  await deleteSessions(tx.db, operator.id)
  await deleteTokens(tx.db, operator.id)
}

async function takeRole(tx: Tx, operator: Operator, grant: HeldRole, acts: Acts): Promise<void> {
  await deleteRole(tx.db, operator.id, grant.workspaceId)
  await acts.record('operator.role_removed', operator, { before: grant.role }, ownerOf(grant))
}

function isFromGroups({ givenBy }: HeldRole): boolean {
  return givenBy === 'oidc'
}

/** Records what the provider's word changes. */
class Acts {
  private readonly clock: Clock
  private readonly tx: Tx
  private readonly place: Place

  constructor(clock: Clock, tx: Tx, place: Place) {
    this.clock = clock
    this.tx = tx
    this.place = place
  }

  /** The provider vouches for the person, not for what was set up before. */
  async prove(operator: Operator): Promise<void> {
    const { clock, tx, actor, place } = this
    const kept = given({ keptSession: place.session })
    if (await removeUnprovedAccess(tx, operator, { clock, actor, ...kept })) place.onAccessRemoved?.()
    await updateOperator(tx.db, operator.id, { provedAt: clock.now() })
  }

  record(
    action: Activity['action'],
    { email: subject }: Operator,
    details: NonNullable<Activity['details']>,
    workspaceId: string,
  ): Promise<void> {
    const createdAt = this.clock.now()
    return recordActivity(this.tx, { workspaceId, actor: this.actor }, createdAt, {
      action,
      subject,
      details,
    })
  }

  private get actor() {
    return { type: 'system', name: 'OpenID Connect', peer: this.place.peer } as const
  }
}
