/**
 * Consumes the event log for automations: events about contacts start runs, wake waiting runs and cancel those of deleted contacts.
 *
 * Events are processed in batches, so a hundred thousand contacts joining a list become runs in a few statements each. Events before an
 * automation's activation start nothing. A new consumer begins at the newest event.
 */
import type { Tx } from '../../db/database.js'
import type { EventConsumer } from '../../events/consumer.js'
import type { EventKind } from '../../events/event.js'
import { findContactIds } from '../../audience/contacts/contact-store.js'
import { isImport, kindsOfImport, withEventsOfImports } from '../../audience/transfer/import-events.js'
import { normalizedAddress } from '../../mail/address.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation, TriggerType } from '../flows/automation.js'
import {
  activeTriggerTypes,
  changeRunCounts,
  findActiveOf,
  hasAutomations,
} from '../flows/automation-store.js'
import { enter, type Entrant } from '../runs/enter.js'
import { findUnfinishedRunsOf, wakeWaitingRuns } from '../runs/bulk-run-store.js'
import { endRuns } from '../runs/run-store.js'
import { fold } from '../../core/fold.js'
import type { StoredEvent } from '../../events/store.js'
import type { AwaitedEvent } from '../runs/run.js'

const KINDS = [
  'contact.created',
  'contact.deleted',
  'list.member_added',
  'list.member_removed',
  'tag.added',
  'tag.removed',
  'form.submitted',
  'email.opened',
  'email.clicked',
  'conversion.created',
  'product.viewed',
  'contacts.imported',
] as const

type Kind = (typeof KINDS)[number]
type TriggerEvent = StoredEvent<Exclude<Kind, 'contacts.imported'>>

/** Trigger types by event kind, for kinds that no run waits for. */
const TRIGGER_BY_KIND = {
  'contact.created': 'contact_created',
  'list.member_added': 'list_joined',
  'list.member_removed': 'list_left',
  'tag.added': 'tag_added',
  'tag.removed': 'tag_removed',
  'form.submitted': 'form_submitted',
} as const satisfies Partial<Record<TriggerEvent['kind'], TriggerType>>

/** An event as automations see it. */
interface TriggerSignal {
  readonly type: TriggerType
  /** Undefined if only the address is known. */
  readonly contactId: string | undefined
  readonly email: string | undefined
  /** `triggerData` of the runs it starts. */
  readonly data: Readonly<Record<string, unknown>>
  /** Set if runs can wait for it. */
  readonly awaited?: AwaitedEvent
  readonly messageId: string | null
  /** Whether a trigger of this type with this configuration fires. */
  matches(config: Automation['triggerConfig']): boolean
}

/** @returns undefined for events without effect, e.g. opens by machines and refunds */
function signalOf(event: TriggerEvent): TriggerSignal | undefined {
  const base = { messageId: null, email: undefined, matches: () => true }
  switch (event.kind) {
    case 'contact.created':
      return { ...base, type: TRIGGER_BY_KIND[event.kind], contactId: event.payload.id, data: {} }
    case 'list.member_added':
    case 'list.member_removed': {
      const { contact_id: contactId, list_id: id, list_name: name } = event.payload
      return {
        ...base,
        contactId,
        data: { list_id: id, list_name: name },
        type: TRIGGER_BY_KIND[event.kind],
        matches: ({ listId }) => listId === id,
      }
    }
    case 'tag.added':
    case 'tag.removed': {
      const { contact_id: contactId, tag_name: name } = event.payload
      return {
        ...base,
        contactId,
        data: { tag_name: name },
        type: TRIGGER_BY_KIND[event.kind],
        matches: ({ tagName }) => typeof tagName === 'string' && fold(tagName.trim()) === fold(name),
      }
    }
    case 'form.submitted': {
      const { form_id: id, contact_id: contactId, fields } = event.payload
      return {
        ...base,
        contactId,
        data: { ...fields, form_id: id },
        type: TRIGGER_BY_KIND[event.kind],
        matches: ({ formId }) => formId === undefined || formId === id,
      }
    }
    case 'conversion.created':
      return purchaseSignal(event)
    case 'product.viewed': {
      const { contactId, productId: id } = event.payload
      return {
        ...base,
        contactId,
        data: { product_id: id },
        type: 'page_viewed',
        awaited: 'page_viewed',
        matches: ({ productId }) => productId === undefined || productId === id,
      }
    }
    case 'email.opened':
    case 'email.clicked':
      return visitSignal(event)
    default:
      return undefined
  }
}

function purchaseSignal({
  payload,
}: Extract<TriggerEvent, { kind: 'conversion.created' }>): TriggerSignal | undefined {
  const { contact_id: contactId, value, currency, id } = payload
  if (value < 0) return undefined
  return {
    contactId,
    email: undefined,
    messageId: null,
    type: 'purchase',
    awaited: 'purchase',
    data: { conversion_id: id, value, currency },
    matches: ({ minValue, currency: wanted }) =>
      (typeof minValue !== 'number' || value >= minValue) &&
      (typeof wanted !== 'string' || wanted.toUpperCase() === currency),
  }
}

function visitSignal(
  event: Extract<TriggerEvent, { kind: 'email.opened' | 'email.clicked' }>,
): TriggerSignal | undefined {
  const { payload, messageId } = event
  if (payload.isBot) return undefined
  const { to: email, contactId, campaignId, templateId } = payload
  const url = event.kind === 'email.clicked' ? event.payload.url : undefined
  const type = event.kind === 'email.opened' ? ('email_opened' as const) : ('email_clicked' as const)
  return {
    messageId,
    email,
    contactId,
    type,
    awaited: type,
    data: { message_id: messageId, ...(url === undefined ? {} : { url }) },
    matches: config =>
      (config['campaignId'] === undefined || config['campaignId'] === campaignId) &&
      (config['templateId'] === undefined || config['templateId'] === templateId) &&
      (config['url'] === undefined || url === undefined || config['url'] === url),
  }
}

/** Most events lead to nothing and cost next to nothing. */
const EVENTS_PER_TURN = 500

type Parts = Pick<FlowParts, 'clock' | 'newId' | 'onEvents' | 'wakeRunner' | 'log'>

export function triggerConsumer(parts: Parts): EventConsumer<Kind> {
  let activeTypes: ReadonlySet<TriggerType> = new Set()
  let mayWait = true
  return {
    name: 'automations',
    startsAt: 'newest',
    kinds: KINDS,
    eventsPerTurn: EVENTS_PER_TURN,
    weigh: event => (isImport(event) ? event.payload.contacts.length : 1),
    // Most installations have no automation for most events: skip those cheaply.
    async refresh(db) {
      activeTypes = await activeTriggerTypes(db)
      mayWait = await hasAutomations(db)
    },
    concerns: event => {
      if (event.kind === 'contacts.imported')
        return kindsOfImport(event.payload).some(kind => isTrigger(kind, activeTypes) === true)
      if (event.kind === 'contact.deleted') return mayWait
      return (isTrigger(event.kind, activeTypes) ?? mayWait) && signalOf(event) !== undefined
    },
    async react(tx, stored) {
      const events = await withEventsOfImports(tx.db, stored)
      const signals = await resolveContacts(tx, events)
      await startRuns(parts, tx, signals)
      await wakeRuns(parts, tx, signals)
      await cancelRunsOfDeleted(parts, tx, events)
    },
  }
}

/** Whether an active automation has this trigger. @returns undefined for kinds that runs may also wait for */
function isTrigger(kind: EventKind, activeTypes: ReadonlySet<TriggerType>): boolean | undefined {
  const type = (TRIGGER_BY_KIND as Partial<Record<EventKind, TriggerType>>)[kind]
  return type && activeTypes.has(type)
}

interface ContactSignal {
  readonly signal: TriggerSignal
  readonly contactId: string
  readonly workspaceId: string
  readonly at: number
}

/** Looks up contacts by address where the event has no contact id; the contact may be newer than the message. */
async function resolveContacts(tx: Tx, events: readonly TriggerEvent[]): Promise<ContactSignal[]> {
  const signals = events.flatMap(event => {
    const signal = signalOf(event)
    return signal ? [{ signal, workspaceId: event.workspaceId, at: event.occurredAt }] : []
  })
  const ids = new Map<string, ReadonlyMap<string, string>>()
  for (const workspaceId of new Set(signals.map(one => one.workspaceId))) {
    const emails = signals.flatMap(({ signal, workspaceId: owner }) =>
      owner === workspaceId && signal.contactId === undefined && signal.email !== undefined
        ? normalizedAddress(signal.email)
        : [],
    )
    ids.set(workspaceId, await findContactIds(tx.db, workspaceId, [...new Set(emails)]))
  }
  return signals.flatMap(one => {
    const { signal, workspaceId } = one
    const known =
      signal.email === undefined ? undefined : ids.get(workspaceId)?.get(normalizedAddress(signal.email))
    const contactId = signal.contactId ?? known
    return contactId === undefined ? [] : [{ ...one, contactId }]
  })
}

async function startRuns(parts: Parts, tx: Tx, signals: readonly ContactSignal[]): Promise<void> {
  const workspaces = [...new Set(signals.map(({ workspaceId }) => workspaceId))]
  if (workspaces.length === 0) return
  for (const automation of await findActiveOf(tx.db, workspaces)) {
    const entrants = signals.filter(one => isTriggeredBy(automation, one)).map(toEntrant)
    if (entrants.length > 0)
      await enter(parts, tx, automation, entrants, { triggerType: automation.triggerType })
  }
}

function isTriggeredBy(
  { workspaceId, triggerType, triggerConfig, activatedAt }: Automation,
  { signal, at, ...one }: ContactSignal,
): boolean {
  return (
    one.workspaceId === workspaceId &&
    signal.type === triggerType &&
    activatedAt !== null &&
    at >= activatedAt &&
    signal.matches(triggerConfig)
  )
}

function toEntrant({ contactId, signal }: ContactSignal): Entrant {
  return { contactId, triggerData: signal.data }
}

async function wakeRuns(
  { clock, wakeRunner }: Parts,
  tx: Tx,
  signals: readonly ContactSignal[],
): Promise<void> {
  let woken = 0
  for (const { signal, contactId } of signals)
    if (signal.awaited) {
      const { awaited: event, messageId } = signal
      woken += await wakeWaitingRuns(tx.db, { contactId, event, messageId }, clock.now())
    }
  if (woken > 0) tx.onCommit(wakeRunner)
}

/** Restoring a contact does not resume its runs. */
async function cancelRunsOfDeleted({ clock }: Parts, tx: Tx, events: readonly TriggerEvent[]): Promise<void> {
  const ids = events.flatMap(event => (event.kind === 'contact.deleted' ? event.payload.contact_id : []))
  if (ids.length === 0) return
  for (const [automation, seqs] of await findUnfinishedRunsOf(tx.db, ids)) {
    const ending = { status: 'cancelled', exitReason: 'contact_deleted' } as const
    const ended = await endRuns(tx.db, seqs, ending, clock.now())
    await changeRunCounts(tx.db, automation, { active: -ended, cancelled: ended })
  }
}
