/** The audience's event kinds and their payloads. Holds no logic. */
import type { Permanence } from '../mail/outcome.js'

/** A contact as the API shows it, without its lists and tags. */
export interface ContactRecord {
  readonly id: string
  readonly email: string
  readonly first_name: string | null
  readonly last_name: string | null
  readonly attributes: Readonly<Record<string, unknown>>
  readonly subscribed: boolean
  readonly bounced: boolean
  readonly bounced_at: string | null
  readonly bounce_type: Permanence | null
  readonly last_opened_at: string | null
  readonly last_clicked_at: string | null
  readonly is_sandbox: boolean
  readonly created_at: string
  readonly updated_at: string
}

export type AudienceSource = 'api' | 'one_click' | 'preferences' | 'form' | 'import' | 'automation' | 'system'

interface AboutContact {
  readonly contact_id: string
  readonly email: string
}

interface Subscription extends AboutContact {
  /** Null for a subscription to everything; those of single lists are derived from `list.member_*`. */
  readonly list_id: string | null
  readonly source: AudienceSource
}

interface Membership extends AboutContact {
  readonly list_id: string
  readonly list_name: string
  readonly source: AudienceSource
}

interface Tagging extends AboutContact {
  readonly tag_id: string
  readonly tag_name: string
  readonly source: AudienceSource
}

interface NamedResource {
  readonly id: string
  readonly name: string
}

/** One change that an import made to up to MAX_CONTACTS_PER_EVENT contacts alike (`transfer/import-events.ts`). */
export interface ImportedContacts {
  readonly is_created: boolean
  /** Names of the fields changed, of contacts that existed. */
  readonly changed: readonly string[]
  /** Added to these lists and tags. */
  readonly lists: readonly NamedResource[]
  readonly tags: readonly NamedResource[]
  /** Contact numbers; they identify nobody once a contact is erased. */
  readonly contacts: readonly number[]
}

declare module '../events/event.js' {
  interface ContactEvents {
    'contact.created': ContactEventOf<'contact.created', ContactRecord>
    /** Includes the names of changed fields. */
    'contact.updated': ContactEventOf<
      'contact.updated',
      ContactRecord & { readonly changed: readonly string[] }
    >
    'contact.deleted': ContactEventOf<'contact.deleted', AboutContact & { readonly is_restorable: boolean }>
    'contact.restored': ContactEventOf<'contact.restored', ContactRecord>
    'contact.subscribed': ContactEventOf<'contact.subscribed', Subscription>
    'contact.unsubscribed': ContactEventOf<'contact.unsubscribed', Subscription>
    'list.member_added': ContactEventOf<'list.member_added', Membership>
    'list.member_removed': ContactEventOf<'list.member_removed', Membership>
    'tag.added': ContactEventOf<'tag.added', Tagging>
    'tag.removed': ContactEventOf<'tag.removed', Tagging>
    /** In place of an event for each contact; consumers that act on single contacts use `eventsOfImport`. */
    'contacts.imported': ContactEventOf<'contacts.imported', ImportedContacts>
  }
}
