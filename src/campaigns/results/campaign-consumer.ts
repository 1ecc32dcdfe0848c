/**
 * Event consumer `campaigns`: updates recipients and counts as events about campaign mail arrive.
 *
 * Rows, counts and cursor change in one transaction, so each event counts once, even after a crash. Ignored: opens and clicks by bots, and
 * mail without a recipient row (deleted by retention). A row is marked in the transaction that queues its mail, so it exists before
 * any event about it.
 */
import type { Tx } from '../../db/database.js'
import type { EventConsumer } from '../../events/consumer.js'
import { findRecipientsOf, updateRecipients, type Recipient } from '../expansion/recipient-store.js'
import { changeCampaign, noteSettled, type CountName } from '../records/campaign-store.js'
import { follow, FOLLOWED, type Followed } from './follow-event.js'
import { countClicks, type LinkClick } from './link-store.js'

/** @param wake tells the runner that the queue may have room */
export function campaignConsumer(wake: () => void): EventConsumer<Followed['kind']> {
  return {
    name: 'campaigns',
    startsAt: 'oldest',
    kinds: FOLLOWED,
    eventsPerTurn: 250,
    concerns: event => event.payload.campaignId !== undefined && !isByMachine(event),
    async react(tx, events) {
      await followAll(tx, events)
      tx.onCommit(wake)
    },
  }
}

function isByMachine(event: Followed): boolean {
  return (event.kind === 'email.opened' || event.kind === 'email.clicked') && event.payload.isBot
}

async function followAll(tx: Tx, events: readonly Followed[]): Promise<void> {
  const ids = [...new Set(events.map(({ messageId }) => messageId))]
  const before = new Map<string, Recipient>()
  for (const one of await findRecipientsOf(tx.db, ids)) before.set(one.messageId ?? '', one)
  const after = new Map(before)
  const counts = new Map<number, Map<CountName, number>>()
  const clicks: LinkClick[] = []
  for (const event of events) {
    const recipient = after.get(event.messageId)
    if (!recipient) continue
    const { campaign, contact } = recipient
    const step = follow(recipient, event)
    after.set(event.messageId, step.recipient)
    const sums = counts.get(campaign) ?? new Map<CountName, number>()
    counts.set(campaign, sums)
    for (const [name, by] of Object.entries(step.counted) as [CountName, number][])
      sums.set(name, (sums.get(name) ?? 0) + by)
    if (event.kind === 'email.clicked') clicks.push({ campaign, contact, url: event.payload.url })
  }
  await updateRecipients(
    tx.db,
    [...after].filter(([id, one]) => before.get(id) !== one).map(([, one]) => one),
  )
  await countClicks(tx.db, clicks)
  for (const [campaign, sums] of counts) await changeCampaign(tx.db, campaign, {}, Object.fromEntries(sums))
  await noteSettled(tx.db, [...counts.keys()])
}
