/** Contact events, and the contact object they share with the API. Pure. */
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { AnyEvent, ContactEvents } from '../../events/event.js'
import type { ContactRecord } from '../audience-events.js'
import type { Acting } from '../audience-parts.js'
import type { Contact, Named } from './contact.js'

export function contactToApi(contact: Contact, isSandbox: boolean): ContactRecord {
  return {
    id: contact.id,
    email: contact.email,
    first_name: contact.firstName,
    last_name: contact.lastName,
    attributes: contact.attributes,
    subscribed: contact.subscribed,
    bounced: contact.bounced,
    bounced_at: isoTimeOrNull(contact.bouncedAt),
    bounce_type: contact.bounceType,
    last_opened_at: isoTimeOrNull(contact.lastOpenedAt),
    last_clicked_at: isoTimeOrNull(contact.lastClickedAt),
    is_sandbox: isSandbox,
    created_at: isoTime(contact.createdAt),
    updated_at: isoTime(contact.updatedAt),
  }
}

/** Spelled out without `...` for speed: an import appends several events per row. */
function newContactEvent<Kind extends keyof ContactEvents>(
  { workspaceId, isSandbox }: Acting,
  occurredAt: number,
  kind: Kind,
  payload: ContactEvents[Kind]['payload'],
): AnyEvent {
  return { workspaceId, messageId: null, isSandbox, occurredAt, kind, payload } as AnyEvent
}

export function contactEvent(
  kind: 'contact.created' | 'contact.restored',
  acting: Acting,
  contact: Contact,
  at: number,
): AnyEvent {
  return newContactEvent(acting, at, kind, contactToApi(contact, acting.isSandbox))
}

export function contactDeletedEvent(
  acting: Acting,
  contact: Contact,
  isRestorable: boolean,
  at: number,
): AnyEvent {
  const { id, email } = contact
  return newContactEvent(acting, at, 'contact.deleted', {
    contact_id: id,
    email,
    is_restorable: isRestorable,
  })
}

/** No events if nothing changed; a changed subscription adds an event of its own. */
export function contactUpdatedEvents(acting: Acting, before: Contact, after: Contact): AnyEvent[] {
  const changed = changedFields(before, after)
  return changed.length === 0 ? [] : contactFieldsUpdatedEvents(acting, after, changed, after.updatedAt)
}

/** @param changed API names of the changed fields */
export function contactFieldsUpdatedEvents(
  acting: Acting,
  after: Contact,
  changed: readonly string[],
  at: number,
): AnyEvent[] {
  const payload = { ...contactToApi(after, acting.isSandbox), changed }
  const update = newContactEvent(acting, at, 'contact.updated', payload)
  if (!changed.includes('subscribed')) return [update]
  const { id, email } = after
  return [
    update,
    newContactEvent(acting, at, after.subscribed ? 'contact.subscribed' : 'contact.unsubscribed', {
      contact_id: id,
      email,
      list_id: null,
      source: acting.source,
    }),
  ]
}

/** Fields that can change, by API name. All but attributes compare with `===`. */
const CHANGING = [
  ['email', 'email'],
  ['first_name', 'firstName'],
  ['last_name', 'lastName'],
  ['attributes', 'attributes'],
  ['subscribed', 'subscribed'],
  ['bounced', 'bounced'],
  ['bounced_at', 'bouncedAt'],
  ['bounce_type', 'bounceType'],
  ['last_opened_at', 'lastOpenedAt'],
  ['last_clicked_at', 'lastClickedAt'],
] as const satisfies readonly (readonly [keyof ContactRecord, keyof Contact])[]

/** Also true for changes that the API does not show. */
export function isChanged(before: Contact, after: Contact): boolean {
  return before.suspended !== after.suspended || changedFields(before, after).length > 0
}

/** @returns API names */
export function changedFields(before: Contact, after: Contact): string[] {
  return CHANGING.filter(
    ([, field]) =>
      before[field] !== after[field] &&
      (field !== 'attributes' || JSON.stringify(before.attributes) !== JSON.stringify(after.attributes)),
  ).map(([name]) => name)
}

/** Webhooks derive the list's `contact.subscribed` and `contact.unsubscribed` from it (`webhooks/events/webhook-event.ts`). */
export function listMemberEvent(
  kind: 'list.member_added' | 'list.member_removed',
  acting: Acting,
  list: Named,
  contact: Contact,
  at: number,
): AnyEvent {
  const { source } = acting
  const { id: contact_id, email } = contact
  const { id: list_id, name: list_name } = list
  return newContactEvent(acting, at, kind, { list_id, list_name, contact_id, email, source })
}

export function tagEvent(
  kind: 'tag.added' | 'tag.removed',
  acting: Acting,
  tag: Named,
  contact: Contact,
  at: number,
): AnyEvent {
  const { source } = acting
  const { id: contact_id, email } = contact
  return newContactEvent(acting, at, kind, { tag_id: tag.id, tag_name: tag.name, contact_id, email, source })
}
