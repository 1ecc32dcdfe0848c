/**
 * Starts runs: the only way contacts enter an automation, whether by trigger, API or another automation.
 *
 * Runs in the caller's transaction, with a few statements however many contacts enter. A contact is refused if it does not match the
 * automation's conditions, has entered before (frequency `once`) or has entered MAX_ENTRIES_PER_HOUR times in the current hour
 * (frequency `every_time`).
 */
import { findAudience } from '../../audience/audience-store.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { findContactsById } from '../../audience/contacts/contact-store.js'
import { findMatching } from '../../audience/segments/audience-query-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { changeRunCounts } from '../flows/automation-store.js'
import { findSteps } from '../flows/step-store.js'
import { recordEntries, recordFirstEntries } from './entry-store.js'
import { insertRuns, type NewRun } from './run-store.js'

export interface Entrant {
  readonly contactId: string
  readonly triggerData: Readonly<Record<string, unknown>>
}

export interface EntrySource {
  /** A trigger type, `api` or `move_to_flow`. */
  readonly triggerType: string
  /** Steps taken by the run that the contacts move from. */
  readonly stepsDone?: number
}

export type Refusal = 'no_contact' | 'conditions' | 'once' | 'too_often'

/** Per contact, for automations it may enter repeatedly. */
export const MAX_ENTRIES_PER_HOUR = 100

export interface Entry {
  readonly entrant: Entrant
  readonly runId: string | undefined
  readonly refusal: Refusal | undefined
}

type Parts = Pick<FlowParts, 'clock' | 'newId' | 'onEvents' | 'wakeRunner' | 'log'>

/** @returns one result per entrant, in the same order */
export async function enter(
  parts: Parts,
  tx: Tx,
  automation: Automation,
  entrants: readonly Entrant[],
  { triggerType, stepsDone = 0 }: EntrySource,
): Promise<Entry[]> {
  const contacts = await findContacts(tx, automation, entrants)
  const matching = await matchingIds(tx, automation, [...contacts.values()], parts.clock.now())
  const left = await entriesLeft(parts, tx, automation, entrants, matching)
  const entries = entrants.map((entrant): Entry => {
    const id = entrant.contactId.toLowerCase()
    const remaining = left.get(id) ?? 0
    if (!contacts.has(id)) return { entrant, refusal: 'no_contact', runId: undefined }
    if (!matching.has(id)) return { entrant, refusal: 'conditions', runId: undefined }
    left.set(id, remaining - 1)
    if (remaining > 0) return { entrant, refusal: undefined, runId: parts.newId() }
    return { entrant, refusal: isOnce(automation) ? 'once' : 'too_often', runId: undefined }
  })
  await start(parts, tx, automation, entries, contacts, { triggerType, stepsDone })
  return entries
}

async function findContacts(
  { db }: Tx,
  { workspaceId }: Automation,
  entrants: readonly Entrant[],
): Promise<ReadonlyMap<string, Contact>> {
  const audience = await findAudience(db, workspaceId)
  const ids = [...new Set(entrants.map(({ contactId }) => contactId.toLowerCase()))]
  const found = audience ? await findContactsById(db, audience.number, ids) : []
  return new Map(found.map(contact => [contact.id, contact]))
}

async function matchingIds(
  { db }: Tx,
  { workspaceId, triggerConfig: { conditions } }: Automation,
  contacts: readonly Contact[],
  now: number,
): Promise<ReadonlySet<string>> {
  if (!conditions) return new Set(contacts.map(({ id }) => id))
  const seqs = contacts.map(({ seq }) => seq)
  const matching = await findMatching(db, readConditions(conditions), { workspaceId, now }, seqs)
  return new Set(contacts.filter(({ seq }) => matching.has(seq)).map(({ id }) => id))
}

/** Records the entries. @returns how often each contact may enter now, by id */
async function entriesLeft(
  { clock, log }: Parts,
  tx: Tx,
  automation: Automation,
  entrants: readonly Entrant[],
  matching: ReadonlySet<string>,
): Promise<Map<string, number>> {
  const now = clock.now()
  if (isOnce(automation)) {
    const fresh = await recordFirstEntries(tx.db, automation.seq, [...matching], now)
    return new Map([...fresh].map(id => [id, 1]))
  }
  const times = new Map<string, number>()
  for (const { contactId } of entrants) {
    const id = contactId.toLowerCase()
    if (matching.has(id)) times.set(id, (times.get(id) ?? 0) + 1)
  }
  const counted = await recordEntries(tx.db, automation.seq, times, now)
  const remaining = new Map<string, number>()
  for (const [id, entries] of counted) {
    const before = entries - (times.get(id) ?? 0)
    remaining.set(id, MAX_ENTRIES_PER_HOUR - before)
    // Logged once per contact and hour.
    if (before <= MAX_ENTRIES_PER_HOUR && entries > MAX_ENTRIES_PER_HOUR)
      tx.onCommit(() =>
        log.warn('automation entries limited', {
          automationId: automation.id,
          contactId: id,
          most: MAX_ENTRIES_PER_HOUR,
        }),
      )
  }
  return remaining
}

function isOnce({ triggerConfig }: Automation): boolean {
  return triggerConfig.frequency === 'once'
}

async function start(
  { clock, onEvents, wakeRunner }: Parts,
  tx: Tx,
  automation: Automation,
  entries: readonly Entry[],
  contacts: ReadonlyMap<string, Contact>,
  { triggerType, stepsDone }: Required<EntrySource>,
): Promise<void> {
  const { workspaceId, isSandbox } = automation
  const startedAt = clock.now()
  const [first] = await findSteps(tx.db, automation.seq)
  const runs = entries.flatMap(({ entrant, runId }): NewRun[] => {
    const contact = contacts.get(entrant.contactId.toLowerCase())
    if (runId === undefined || !contact) return []
    return [
      {
        id: runId,
        automation: automation.seq,
        workspaceId,
        isSandbox,
        startedAt,
        contactId: contact.id,
        contactEmail: contact.email,
        step: first?.seq ?? null,
        stepsDone,
        triggerType,
        triggerData: entrant.triggerData,
        flowVersion: automation.version,
      },
    ]
  })
  if (runs.length === 0) return
  await insertRuns(tx.db, runs)
  await changeRunCounts(tx.db, automation.seq, { active: runs.length })
  await appendEvents(
    tx,
    runs.map(run => ({
      kind: 'flow.triggered',
      workspaceId,
      isSandbox,
      messageId: null,
      occurredAt: startedAt,
      payload: { automationId: automation.id, runId: run.id, contactId: run.contactId, triggerType },
    })),
  )
  tx.onCommit(onEvents)
  tx.onCommit(wakeRunner)
}
