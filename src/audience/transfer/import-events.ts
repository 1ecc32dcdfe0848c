/**
 * Events of imports: one for many contacts that changed alike, and the events per contact that it stands for.
 *
 * The importer appends the former. Consumers that act on single contacts (webhooks, automations) expand them in their own transaction;
 * contacts are shown as they are then, and deleted ones are left out.
 */
import type { Queries } from '../../db/database.js'
import type { AnyEvent, EventKind } from '../../events/event.js'
import type { StoredEvent } from '../../events/store.js'
import type { ImportedContacts } from '../audience-events.js'
import type { Acting } from '../audience-parts.js'
import {
  listMemberEvent,
  contactEvent,
  tagEvent,
  contactFieldsUpdatedEvents,
} from '../contacts/contact-events.js'
import type { Contact, Named } from '../contacts/contact.js'
import { findContactsBySeq } from '../contacts/contact-store.js'

/** Bounds what a consumer does in one transaction. */
const MAX_CONTACTS_PER_EVENT = 100

interface Change {
  readonly isCreated: boolean
  readonly changed: readonly string[]
  readonly lists: Named[]
  readonly tags: Named[]
}

/** Changes to each contact by a batch of rows. */
export class ImportChanges {
  private readonly changes = new Map<number, Change>()

  /** Contacts changed in any way. */
  get count(): number {
    return this.changes.size
  }

  created({ seq }: Contact): void {
    this.changes.set(seq, { isCreated: true, changed: [], lists: [], tags: [] })
  }

  /** @param changed API names; empty if only other fields changed */
  updated({ seq }: Contact, changed: readonly string[]): void {
    this.changes.set(seq, { isCreated: false, changed, lists: [], tags: [] })
  }

  added({ seq }: Contact, to: 'lists' | 'tags', thing: Named): void {
    const change = this.changes.get(seq) ?? { isCreated: false, changed: [], lists: [], tags: [] }
    change[to].push(thing)
    this.changes.set(seq, change)
  }

  events({ workspaceId, isSandbox }: Acting, occurredAt: number): AnyEvent[] {
    const alike = new Map<string, { readonly change: Change; readonly contacts: number[] }>()
    for (const [seq, change] of this.changes) {
      const { isCreated, changed, lists, tags } = change
      if (!isCreated && changed.length + lists.length + tags.length === 0) continue
      const key = [isCreated, changed, lists.map(({ id }) => id), tags.map(({ id }) => id)].join('|')
      const group = alike.get(key)
      if (group) group.contacts.push(seq)
      else alike.set(key, { change, contacts: [seq] })
    }
    const events: AnyEvent[] = []
    for (const { change, contacts } of alike.values())
      for (let at = 0; at < contacts.length; at += MAX_CONTACTS_PER_EVENT) {
        const payload: ImportedContacts = {
          is_created: change.isCreated,
          changed: change.changed,
          lists: change.lists.map(named),
          tags: change.tags.map(named),
          contacts: contacts.slice(at, at + MAX_CONTACTS_PER_EVENT),
        }
        events.push({
          kind: 'contacts.imported',
          workspaceId,
          messageId: null,
          isSandbox,
          occurredAt,
          payload,
        })
      }
    return events
  }
}

function named({ id, name }: Named): Named {
  return { id, name }
}

/** Kinds of the events per contact. */
export function kindsOfImport({ is_created, changed, lists, tags }: ImportedContacts): EventKind[] {
  return [
    ...(is_created ? (['contact.created'] as const) : []),
    ...(changed.length > 0 ? (['contact.updated'] as const) : []),
    ...(changed.includes('subscribed') ? (['contact.unsubscribed'] as const) : []),
    ...(lists.length > 0 ? (['list.member_added'] as const) : []),
    ...(tags.length > 0 ? (['tag.added'] as const) : []),
  ]
}

export function isImport(event: { readonly kind: string }): event is StoredEvent<'contacts.imported'> {
  return event.kind === 'contacts.imported'
}

/** Replaces imports by the events per contact. */
export async function withEventsOfImports<Kind extends EventKind>(
  db: Queries,
  events: readonly StoredEvent<Kind>[],
): Promise<StoredEvent<Exclude<Kind, 'contacts.imported'>>[]> {
  const all: StoredEvent<EventKind>[] = []
  for (const event of events)
    if (isImport(event)) all.push(...(await eventsOfImport(db, event)))
    else all.push(event)
  return all as StoredEvent<Exclude<Kind, 'contacts.imported'>>[]
}

async function eventsOfImport(
  db: Queries,
  { seq, workspaceId, isSandbox, occurredAt: at, payload }: StoredEvent<'contacts.imported'>,
): Promise<StoredEvent<EventKind>[]> {
  const acting: Acting = { workspaceId, isSandbox, source: 'import' }
  const { is_created, changed, lists, tags, contacts } = payload
  const found = await findContactsBySeq(db, contacts)
  return found
    .flatMap(contact => [
      ...(is_created ? [contactEvent('contact.created', acting, contact, at)] : []),
      ...(changed.length > 0 ? contactFieldsUpdatedEvents(acting, contact, changed, at) : []),
      ...lists.map(list => listMemberEvent('list.member_added', acting, list, contact, at)),
      ...tags.map(tag => tagEvent('tag.added', acting, tag, contact, at)),
    ])
    .map(event => ({ ...event, seq }))
}
