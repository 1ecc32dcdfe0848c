/** What the event log is told of contacts, and what a contact looks like there and in the API. Pure. */
import { isoTime, isoTimeOrNull } from '../../core/moments.js'
import type { AnyEvent } from '../../events/event.js'
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

/** Fields that every event of the audience has. */
function head({ workspaceId, isSandbox }: Acting, at: number) {
  return { workspaceId, messageId: null, isSandbox, occurredAt: at }
}

function about({ id, email }: Contact) {
  return { contact_id: id, email }
}

export function toldOf(
  kind: 'contact.created' | 'contact.restored',
  acting: Acting,
  contact: Contact,
  at: number,
): AnyEvent {
  return { ...head(acting, at), kind, payload: contactToApi(contact, acting.isSandbox) }
}

export function toldDeleted(acting: Acting, contact: Contact, isRestorable: boolean, at: number): AnyEvent {
  return {
    ...head(acting, at),
    kind: 'contact.deleted',
    payload: { ...about(contact), is_restorable: isRestorable },
  }
}

/** Nothing where nothing changed; beside the change as such, that the contact wants mail again or no more. */
export function toldChanged(acting: Acting, before: Contact, after: Contact): AnyEvent[] {
  const changed = changedFields(before, after)
  if (changed.length === 0) return []
  const at = after.updatedAt
  const payload = { ...contactToApi(after, acting.isSandbox), changed }
  const update: AnyEvent = { ...head(acting, at), kind: 'contact.updated', payload }
  if (before.subscribed === after.subscribed) return [update]
  return [
    update,
    {
      ...head(acting, at),
      kind: after.subscribed ? 'contact.subscribed' : 'contact.unsubscribed',
      payload: { ...about(after), list_id: null, source: acting.source },
    },
  ]
}

/** Names of the API. */
export function changedFields(before: Contact, after: Contact): string[] {
  const [old, now] = [contactToApi(before, false), contactToApi(after, false)]
  return (Object.keys(now) as (keyof ContactRecord)[]).filter(
    name => name !== 'updated_at' && JSON.stringify(old[name]) !== JSON.stringify(now[name]),
  )
}

/** Where the contact itself chose the list (by a form, on the preferences page), its subscription is told as well. */
export function toldMember(
  kind: 'list.member_added' | 'list.member_removed',
  acting: Acting,
  list: Named,
  contact: Contact,
  at: number,
): AnyEvent[] {
  const { source } = acting
  const membership: AnyEvent = {
    ...head(acting, at),
    kind,
    payload: { list_id: list.id, list_name: list.name, ...about(contact), source },
  }
  if (source !== 'form' && source !== 'preferences') return [membership]
  return [
    membership,
    {
      ...head(acting, at),
      kind: kind === 'list.member_added' ? 'contact.subscribed' : 'contact.unsubscribed',
      payload: { ...about(contact), list_id: list.id, source },
    },
  ]
}

export function toldTag(
  kind: 'tag.added' | 'tag.removed',
  acting: Acting,
  tag: Named,
  contact: Contact,
  at: number,
): AnyEvent {
  const { source } = acting
  return {
    ...head(acting, at),
    kind,
    payload: { tag_id: tag.id, tag_name: tag.name, ...about(contact), source },
  }
}
