/**
 * Follows the event log for automations: what happens to contacts starts runs, lets waiting ones go on, and ends those of contacts
 * that are deleted.
 *
 * Many events of one kind, as when a hundred thousand contacts join a list at once, come some hundred at a time; those of an
 * automation become runs together. What happened before an automation became active starts nothing. It begins at the newest event.
 */
import type { Tx } from '../../db/database.js'
import type { EventConsumer } from '../../events/consumer.js'
import { findContactIds } from '../../audience/contacts/contact-store.js'
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
import { findRunsOf } from '../runs/following-store.js'
import { endRuns } from '../runs/run-store.js'
import { wakeWaiting } from '../runs/waiting-store.js'
import { KINDS, signOf, STARTING, type Sign, type Told } from './event-triggers.js'

/** Of one turn at most: where nothing follows from them they are next to no work. */
const EVENTS_AT_ONCE = 500

type Parts = Pick<FlowParts, 'clock' | 'newId' | 'onEvents' | 'wakeRunner' | 'log'>

export function triggerConsumer(parts: Parts): EventConsumer<(typeof KINDS)[number]> {
  let started: ReadonlySet<TriggerType> = new Set()
  let mayWait = true
  return {
    name: 'automations',
    startsAt: 'newest',
    kinds: KINDS,
    eventsPerTurn: EVENTS_AT_ONCE,
    // An import tells of each of its rows several times, and thousands may click, mostly where no automation waits for that.
    async refresh(db) {
      started = await activeTriggerTypes(db)
      mayWait = await hasAutomations(db)
    },
    concerns: event => {
      if (event.kind === 'contact.deleted') return mayWait
      return (startedBy(event.kind, started) ?? mayWait) && signOf(event) !== undefined
    },
    async react(tx, events) {
      const happened = await findWhom(tx, events)
      await startRuns(parts, tx, happened)
      await wakeRuns(parts, tx, happened)
      await endRunsOfDeleted(parts, tx, events)
    },
  }
}

/** @returns undefined for a kind that runs may wait for as well */
function startedBy(kind: Told['kind'], started: ReadonlySet<TriggerType>): boolean | undefined {
  const type = (STARTING as Partial<Record<Told['kind'], TriggerType>>)[kind]
  return type && started.has(type)
}

interface Happened {
  readonly sign: Sign
  readonly contactId: string
  readonly workspaceId: string
  readonly at: number
}

/** Mail may be to an address that became a contact's afterwards. */
async function findWhom(tx: Tx, events: readonly Told[]): Promise<Happened[]> {
  const signs = events.flatMap(event => {
    const sign = signOf(event)
    return sign ? [{ sign, workspaceId: event.workspaceId, at: event.occurredAt }] : []
  })
  const ids = new Map<string, ReadonlyMap<string, string>>()
  for (const workspaceId of new Set(signs.map(one => one.workspaceId))) {
    const emails = signs.flatMap(({ sign, workspaceId: owner }) =>
      owner === workspaceId && sign.contactId === undefined && sign.email !== undefined
        ? normalizedAddress(sign.email)
        : [],
    )
    ids.set(workspaceId, await findContactIds(tx.db, workspaceId, [...new Set(emails)]))
  }
  return signs.flatMap(one => {
    const { sign, workspaceId } = one
    const known =
      sign.email === undefined ? undefined : ids.get(workspaceId)?.get(normalizedAddress(sign.email))
    const contactId = sign.contactId ?? known
    return contactId === undefined ? [] : [{ ...one, contactId }]
  })
}

async function startRuns(parts: Parts, tx: Tx, happened: readonly Happened[]): Promise<void> {
  const workspaces = [...new Set(happened.map(({ workspaceId }) => workspaceId))]
  if (workspaces.length === 0) return
  for (const automation of await findActiveOf(tx.db, workspaces)) {
    const entrants = happened.filter(one => isMeant(automation, one)).map(toEntrant)
    if (entrants.length > 0)
      await enter(parts, tx, automation, entrants, { triggerType: automation.triggerType })
  }
}

function isMeant(
  { workspaceId, triggerType, triggerConfig, activatedAt }: Automation,
  { sign, at, ...one }: Happened,
): boolean {
  return (
    one.workspaceId === workspaceId &&
    sign.type === triggerType &&
    activatedAt !== null &&
    at >= activatedAt &&
    sign.fits(triggerConfig)
  )
}

function toEntrant({ contactId, sign }: Happened): Entrant {
  return { contactId, triggerData: sign.data }
}

async function wakeRuns({ clock, wakeRunner }: Parts, tx: Tx, happened: readonly Happened[]): Promise<void> {
  let woken = 0
  for (const { sign, contactId } of happened)
    if (sign.awaited) {
      const { awaited: event, messageId } = sign
      woken += await wakeWaiting(tx.db, { contactId, event, messageId }, clock.now())
    }
  if (woken > 0) tx.onCommit(wakeRunner)
}

/** What is restored later begins nothing anew. */
async function endRunsOfDeleted({ clock }: Parts, tx: Tx, events: readonly Told[]): Promise<void> {
  const ids = events.flatMap(event => (event.kind === 'contact.deleted' ? event.payload.contact_id : []))
  if (ids.length === 0) return
  for (const [automation, seqs] of await findRunsOf(tx.db, ids)) {
    const ending = { status: 'cancelled', exitReason: 'contact_deleted' } as const
    const ended = await endRuns(tx.db, seqs, ending, clock.now())
    await changeRunCounts(tx.db, automation, { active: -ended, cancelled: ended })
  }
}
