/**
 * Adds and removes suppressions by hand, with an entry in the activity log, and defines how contacts follow them. Suppressions by bounces
 * and complaints (`bounce-consumer.ts`) are not in the activity log.
 */
import { AppError } from '../../core/errors.js'
import type { Tx } from '../../db/database.js'
import type { Actor } from '../../core/actor.js'
import { recordActivity } from '../../events/activity-store.js'
import type { AnyEvent } from '../../events/event.js'
import { appendEvents } from '../../events/store.js'
import {
  deleteSuppression,
  suppressOrWiden,
  type SuppressResult,
  type Suppression,
} from './suppression-store.js'
import { asciiDomain, normalizedAddress, parseAddress } from '../../mail/address.js'

declare module '../../events/event.js' {
  /** Only for changes by hand; suppressions by bounces, complaints and unsubscribes follow from those events. */
  interface ContactEvents {
    'suppression.added': ContactEventOf<'suppression.added', Pick<Suppression, 'email' | 'reason' | 'scope'>>
    'suppression.removed': ContactEventOf<'suppression.removed', Pick<Suppression, 'email'>>
  }
}

/** Adds an entry, or widens one with scope `marketing`. @throws AppError duplicate if it already covers the scope */
export async function addSuppression(
  tx: Tx,
  suppression: Suppression,
  contacts: ContactSuppressions,
  actor: Actor,
  isSandbox = false,
): Promise<Exclude<SuppressResult, 'known'>> {
  const result = await addIfMissing(tx, suppression, contacts, actor, isSandbox)
  if (result !== 'known') return result
  throw new AppError('duplicate', `${suppression.email} is already suppressed`, { path: 'email' })
}

export async function addIfMissing(
  tx: Tx,
  suppression: Suppression,
  contacts: ContactSuppressions,
  actor: Actor,
  isSandbox: boolean,
): Promise<SuppressResult> {
  const { workspaceId, email, reason, scope, createdAt } = suppression
  const result = await suppressOrWiden(tx.db, suppression)
  if (result === 'known') return result
  await recordActivity(tx, { workspaceId, actor }, createdAt, {
    action: `suppression.${result}`,
    subject: email,
    details: { reason, scope },
  })
  await appendEvents(tx, [suppressionAddedEvent(suppression, isSandbox)])
  await contacts.suppressed(tx, [suppression], { isSandbox, source: 'api' })
  return result
}

/** @throws AppError not_found */
export async function removeSuppression(
  tx: Tx,
  removal: Pick<Suppression, 'workspaceId' | 'email' | 'createdAt'>,
  contacts: ContactSuppressions,
  actor: Actor,
  isSandbox = false,
): Promise<void> {
  if (!(await removeIfPresent(tx, removal, contacts, actor, isSandbox)))
    throw new AppError('not_found', `${removal.email} is not suppressed`)
}

/** @returns whether there was an entry */
export async function removeIfPresent(
  tx: Tx,
  removal: Pick<Suppression, 'workspaceId' | 'email' | 'createdAt'>,
  contacts: ContactSuppressions,
  actor: Actor,
  isSandbox: boolean,
): Promise<boolean> {
  const { workspaceId, email, createdAt } = removal
  if (!(await deleteSuppression(tx.db, workspaceId, email))) return false
  await recordActivity(tx, { workspaceId, actor }, createdAt, {
    action: 'suppression.removed',
    subject: email,
  })
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
  return true
}

export function suppressionAddedEvent(
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

/**
 * Reads an address, a whole domain as `@example.com`, or an erased address as exported.
 *
 * @param path of the field in the request @returns the normalized form, as stored and looked up
 * @throws AppError validation_error
 */
export function readSuppressionEntry(text: string, path = 'email'): string {
  const entry = normalizedAddress(text)
  if (/^erased:[0-9a-f]{64}$/.test(entry)) return entry
  if (entry.startsWith('@') ? asciiDomain(entry.slice(1)) === undefined : !parseAddress(entry))
    throw new AppError('validation_error', `${text.slice(0, 300)} is not a valid address or @domain`, {
      path,
    })
  return entry
}

export interface SuppressionChange {
  readonly isSandbox: boolean
  /** `api`: a client or the operator; `import`: a file; `system`: a bounce or complaint. */
  readonly source: 'api' | 'import' | 'system'
}

export interface ContactSuppressions {
  /**
   * Entries were added or widened, or already existed.
   *
   * @param entries addresses and whole domains, of any workspaces
   */
  suppressed(tx: Tx, entries: readonly Suppression[], change: SuppressionChange): Promise<void>
  released(
    tx: Tx,
    entry: Pick<Suppression, 'workspaceId' | 'email' | 'createdAt'>,
    change: SuppressionChange,
  ): Promise<void>
}

/**
 * Whether an entry records the person's own opt-out: an unsubscribe, or a complaint about a message. Removing it does not resubscribe the
 * contact. A complaint without a message was entered by hand.
 */
export function isOptOut({
  reason,
  sourceMessageId,
}: Pick<Suppression, 'reason' | 'sourceMessageId'>): boolean {
  return reason === 'unsubscribe' || (reason === 'complaint' && sourceMessageId !== null)
}
