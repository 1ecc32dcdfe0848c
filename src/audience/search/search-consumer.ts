/**
 * Takes new and changed contacts into the index of the search, in steps: the consumer `contact_search` of the event log.
 *
 * There are as many events as contacts that the index does not know, so that whoever follows them all is done with all.
 */
import type { EventConsumer } from '../../events/consumer.js'
import { fillSearch } from './search-store.js'

/** Each is a few dozen entries: a few milliseconds in all. Fewer at a time would be more work for each. */
const CONTACTS_PER_TURN = 100

export function searchConsumer(): EventConsumer<'contact.created' | 'contact.updated' | 'contact.restored'> {
  return {
    name: 'contact_search',
    startsAt: 'oldest',
    kinds: ['contact.created', 'contact.updated', 'contact.restored'],
    eventsPerTurn: CONTACTS_PER_TURN,
    async react(tx) {
      await fillSearch(tx.db, CONTACTS_PER_TURN)
    },
  }
}
