/**
 * Adding and removing suppressions by hand, each with its line in the activity log.
 *
 * Called by the routes and the command line inside their transaction. What bounces and complaints suppress is the work of
 * `bounce-consumer.ts`, which is nobody's act and not logged.
 */
import { AppError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import { OPERATOR, recordActivity, type Actor } from '../../events/activity-store.js'
import type { AnyEvent } from '../../events/event.js'
import { appendEvents } from '../../events/store.js'
import type { SuppressedContacts } from './suppressed-contacts.js'
import {
  deleteSuppression,
  suppressOrWiden,
  type Suppressing,
  type Suppression,
} from './suppression-store.js'

declare module '../../events/event.js' {
  /** By hand: a key or the operator. What bounces, complaints and wishes suppress follows from events of their own. */
  interface ContactEvents {
    'suppression.added': ContactEventOf<'suppression.added', Pick<Suppression, 'email' | 'reason' | 'scope'>>
    'suppression.removed': ContactEventOf<'suppression.removed', Pick<Suppression, 'email'>>
  }
}

/** Adds an entry, or widens one that stops marketing only. @throws AppError duplicate for one that stops as much already */
export async function addSuppression(
  tx: Tx,
  suppression: Suppression,
  contacts: SuppressedContacts,
  actor: Actor = OPERATOR,
  isSandbox = false,
): Promise<Exclude<Suppressing, 'known'>> {
  const { workspaceId, email, reason, scope, createdAt } = suppression
  const result = await suppressOrWiden(tx.db, suppression)
  if (result === 'known') throw new AppError('duplicate', `${email} is suppressed already`, { path: 'email' })
  await recordActivity(tx, {
    workspaceId,
    actor,
    action: `suppression.${result}`,
    subject: email,
    details: { reason, scope },
    createdAt,
  })
  await appendEvents(tx, [suppressedByHand(suppression, isSandbox)])
  await contacts.suppressed(tx, [suppression], { isSandbox, source: 'api' })
  return result
}

/** @throws AppError not_found */
export async function removeSuppression(
  tx: Tx,
  removal: Pick<Suppression, 'workspaceId' | 'email' | 'createdAt'>,
  contacts: SuppressedContacts,
  actor: Actor = OPERATOR,
  isSandbox = false,
): Promise<void> {
  const { workspaceId, email, createdAt } = removal
  if (!(await deleteSuppression(tx.db, workspaceId, email)))
    throw new AppError('not_found', `${email} is not suppressed`)
  await recordActivity(tx, { workspaceId, actor, action: 'suppression.removed', subject: email, createdAt })
  await appendEvents(tx, [
    {
      kind: 'suppression.removed',
      workspaceId,
      messageId: null,
      isSandbox,
      occurredAt: createdAt,
      payload: { email },
    },
  ])
  await contacts.released(tx, removal, { isSandbox, source: 'api' })
}

/** What the event log is told of an entry that somebody has made. */
export function suppressedByHand(
  { workspaceId, email, reason, scope, createdAt }: Suppression,
  isSandbox: boolean,
): AnyEvent {
  return {
    kind: 'suppression.added',
    workspaceId,
    messageId: null,
    isSandbox,
    occurredAt: createdAt,
    payload: { email, reason, scope },
  }
}
