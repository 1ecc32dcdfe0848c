/**
 * Event consumer `campaigns`: updates recipients and counts as events about campaign mail arrive.
 *
 * Rows, counts and cursor change in one transaction, so each event counts once, even after a crash. Opens and clicks by bots count in the
 * timeline only. Ignored: mail without a recipient row (deleted by retention). A row is marked in the transaction that queues its mail, so it exists before
 * any event about it.
 */
import { must } from '../../core/must.js'
import type { Tx } from '../../db/database.js'
import type { EventConsumer } from '../../events/consumer.js'
import { findRecipientsOf, updateRecipients, type Recipient } from '../model/recipient-store.js'
import { changeVariant } from '../model/variant-store.js'
import { changeCampaign, noteSettled, type CountName, type Counted } from '../model/campaign-store.js'
import { countClicks, type LinkClick } from './result-store.js'
import { countInReport, type Noted } from './report-counters.js'
import { EMPTY_SUBJECT } from '../../content/rendering/mail-plan.js'
import type { StoredEvent } from '../../events/store.js'
import { DELETED_BY_OPERATOR } from '../../queue/claiming/claim.js'

/** @param wake tells the runner that the queue may have room */
export function campaignConsumer(wake: () => void): EventConsumer<Followed['kind']> {
  return {
    name: 'campaigns',
    startsAt: 'oldest',
    kinds: FOLLOWED,
    eventsPerTurn: 250,
    concerns: event => event.payload.campaignId !== undefined,
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
  for (const one of await findRecipientsOf(tx.db, ids))
    before.set(must(one.messageId, 'the message of a recipient'), one)
  const after = new Map(before)
  const counts = new Map<number, Map<CountName, number>>()
  const ofVariants = new Map<string, VariantSums>()
  const clicks: LinkClick[] = []
  const noted: Noted[] = []
  for (const event of events) {
    const recipient = after.get(event.messageId)
    if (!recipient) continue
    const { campaign, contact, variant } = recipient
    const about = { campaign, at: event.occurredAt, to: event.payload.to }
    if (isByMachine(event)) {
      const isOpen = event.kind === 'email.opened'
      noted.push({ ...about, counted: isOpen ? { machineOpens: 1 } : { machineClicks: 1 } })
      continue
    }
    const step = follow(recipient, event)
    noted.push({ ...about, counted: step.counted })
    after.set(event.messageId, step.recipient)
    const sums = counts.get(campaign) ?? new Map<CountName, number>()
    counts.set(campaign, sums)
    for (const [name, by] of Object.entries(step.counted) as [CountName, number][])
      sums.set(name, (sums.get(name) ?? 0) + by)
    if (variant !== null) addTo(ofVariants, campaign, variant, step.counted)
    if (event.kind === 'email.clicked') clicks.push({ campaign, contact, variant, url: event.payload.url })
  }
  await updateRecipients(
    tx.db,
    [...after].filter(([id, one]) => before.get(id) !== one).map(([, one]) => one),
  )
  await countClicks(tx.db, clicks)
  await countInReport(tx.db, noted)
  for (const [campaign, sums] of counts) await changeCampaign(tx.db, campaign, {}, Object.fromEntries(sums))
  for (const { campaign, variant, sums } of ofVariants.values())
    await changeVariant(tx.db, campaign, variant, {}, sums)
  await noteSettled(tx.db, [...counts.keys()])
}

interface VariantSums {
  readonly campaign: number
  readonly variant: number
  readonly sums: Record<string, number>
}

function addTo(all: Map<string, VariantSums>, campaign: number, variant: number, counted: Counted): void {
  const key = `${campaign} ${variant}`
  const own = all.get(key) ?? { campaign, variant, sums: {} }
  all.set(key, own)
  for (const [name, by] of Object.entries(counted)) own.sums[name] = (own.sums[name] ?? 0) + by
}

export const FOLLOWED = [
  'email.sent',
  'email.delivered',
  'email.opened',
  'email.clicked',
  'email.bounced',
  'email.failed',
  'email.suppressed',
  'email.complained',
  'email.unsubscribed',
] as const

export type Followed = StoredEvent<(typeof FOLLOWED)[number]>

export interface Step {
  readonly recipient: Recipient
  readonly counted: Counted
}

/**
 * How an event about a campaign's mail changes its recipient's status and the counts.
 *
 *   event         sent        delivered   opened    clicked   bounced   failed, skipped, cancelled
 *   sent          =           =           =         =         =         =
 *   delivered     delivered   =           =         =         =         =
 *   opened        opened      opened      =         =         =         =
 *   clicked       clicked     clicked     clicked   =         =         =
 *   bounced       bounced     bounced     =         =         =         =
 *   failed        failed *    =           =         =         =         =
 *   suppressed    skipped     =           =         =         =         =
 *
 *   *  cancelled if it was removed from the queue; skipped if its subject was empty. Any status other than `sent` is settled.
 *
 * An open or click before the delivery is confirmed implies delivery, but `delivered` is counted on its own event. A click without an open
 * follows an inferred `email.opened`, so clicks never count opens. Pure.
 */
export function follow(recipient: Recipient, event: Followed): Step {
  switch (event.kind) {
    case 'email.sent':
      return { recipient, counted: { sends: 1 } }
    case 'email.delivered':
      return settled(recipient, 'delivered', { deliveries: 1 })
    case 'email.opened':
      return opened(recipient)
    case 'email.clicked':
      return clicked(recipient)
    case 'email.bounced':
      return settled(recipient, 'bounced', { bounces: 1 }, ['sent', 'delivered'])
    case 'email.failed':
      if (event.payload.reason === EMPTY_SUBJECT)
        return settled(
          { ...recipient, reason: 'empty_subject' },
          'skipped',
          {},
          ['sent'],
          'skipped',
          recipient,
        )
      return event.payload.reason === DELETED_BY_OPERATOR
        ? settled(recipient, 'cancelled', {}, ['sent'], 'cancelled')
        : settled(recipient, 'failed', {})
    case 'email.suppressed':
      return settled(
        { ...recipient, reason: event.payload.reason ?? 'suppressed' },
        'skipped',
        {},
        ['sent'],
        'skipped',
        recipient,
      )
    case 'email.complained':
      return { recipient, counted: { complaints: 1 } }
    case 'email.unsubscribed':
      return { recipient, counted: { unsubscribes: 1 } }
  }
}

/**
 * @param from current status
 * @param as count to add
 * @param otherwise status if it is already settled
 */
function settled(
  recipient: Recipient,
  status: Recipient['status'],
  counted: Counted,
  from: readonly Recipient['status'][] = ['sent'],
  as: 'done' | 'skipped' | 'cancelled' = 'done',
  otherwise = recipient,
): Step {
  if (!from.includes(recipient.status)) return { recipient: otherwise, counted }
  const leaves: Counted = recipient.status === 'sent' ? { queued: -1, [as]: 1 } : {}
  return { recipient: { ...recipient, status }, counted: { ...counted, ...leaves } }
}

function opened(recipient: Recipient): Step {
  const counted = recipient.hasOpened ? { opens: 1 } : { opens: 1, uniqueOpens: 1 }
  return settled({ ...recipient, hasOpened: true }, 'opened', counted, ['sent', 'delivered'])
}

function clicked(recipient: Recipient): Step {
  const counted: Counted = recipient.hasClicked ? { clicks: 1 } : { clicks: 1, uniqueClicks: 1 }
  return settled({ ...recipient, hasClicked: true }, 'clicked', counted, ['sent', 'delivered', 'opened'])
}
