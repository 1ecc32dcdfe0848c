/**
 * Adds new and changed contacts to the search index in batches: the event consumer `contact_search`.
 *
 * Each unindexed contact has at least one event, so processing all events indexes all contacts. Contacts that are already indexed, such
 * as imported ones, are skipped.
 */
import type { EventConsumer } from '../../events/consumer.js'
import { fillSearch, knowsAll } from './search-store.js'

/** Each contact adds a few dozen index entries; smaller batches cost more per contact. */
const CONTACTS_PER_TURN = 500

export function searchConsumer(): EventConsumer<'contact.created' | 'contact.updated' | 'contact.restored'> {
  let isBehind = true
  return {
    name: 'contact_search',
    startsAt: 'oldest',
    kinds: ['contact.created', 'contact.updated', 'contact.restored'],
    eventsPerTurn: CONTACTS_PER_TURN,
    async refresh(db) {
      isBehind = !(await knowsAll(db))
    },
    concerns: () => isBehind,
    async react(tx, events) {
      await fillSearch(tx.db, events.length)
    },
  }
}
