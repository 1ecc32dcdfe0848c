/**
 * Takes new and changed contacts into the index of the search, in steps: the consumer `contact_search` of the event log.
 *
 * There are at least as many events as contacts that the index does not know, so that whoever follows them all is done with all. Of contacts
 * that it knows already, as those of an import, nothing follows.
 */
import type { EventConsumer } from '../../events/consumer.js'
import { fillSearch, knowsAll } from './search-store.js'

/** At most: each is a few dozen entries. Fewer at a time are more work for each. */
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
