/**
 * Contacts enter an automation: the one way in, for triggers, the API and other automations.
 *
 * In the transaction of whoever brings them, for one as for hundreds: rows, count and events of all are a few statements. Whom its
 * conditions do not mean does not enter, nor, where its frequency is `once`, who has been in it before, nor, where it is `every_time`,
 * who has entered MOST_AN_HOUR times in this hour. The runner does the steps.
 */
import { findAudience } from '../../audience/audience-store.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { findContactsById } from '../../audience/contacts/contact-store.js'
import { findMatching } from '../../audience/segments/match-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { changeRunCounts } from '../flows/automation-store.js'
import { findSteps } from '../flows/step-store.js'
import { countEntries, enterOnce } from './entry-store.js'
import { insertRuns, type NewRun } from './run-store.js'

export interface Entrant {
  readonly contactId: string
  readonly triggerData: Readonly<Record<string, unknown>>
}

export interface Way {
  /** What brings them: a type of trigger, `api` or `move_to_flow`. */
  readonly triggerType: string
  /** Steps that the run has behind it which they come from. */
  readonly stepsDone?: number
}

/** Why somebody did not enter. */
export type Refusal = 'no_contact' | 'conditions' | 'once' | 'too_often'

/** Entries of one contact into an automation that it may enter again; what an automation does may be what starts it. */
export const MOST_AN_HOUR = 100

export interface Entry {
  readonly entrant: Entrant
  /** Of the run; undefined where it was refused. */
  readonly runId: string | undefined
  readonly refusal: Refusal | undefined
}

type Parts = Pick<FlowParts, 'clock' | 'newId' | 'onEvents' | 'wakeRunner' | 'log'>

/** @returns what became of each, in their order */
export async function enter(
  parts: Parts,
  tx: Tx,
  automation: Automation,
  entrants: readonly Entrant[],
  { triggerType, stepsDone = 0 }: Way,
): Promise<Entry[]> {
  const contacts = await findEntering(tx, automation, entrants)
  const meant = await findAllowed(tx, automation, [...contacts.values()], parts.clock.now())
  const left = await roomOf(parts, tx, automation, entrants, meant)
  const entries = entrants.map((entrant): Entry => {
    const id = entrant.contactId.toLowerCase()
    const room = left.get(id) ?? 0
    if (!contacts.has(id)) return { entrant, refusal: 'no_contact', runId: undefined }
    if (!meant.has(id)) return { entrant, refusal: 'conditions', runId: undefined }
    left.set(id, room - 1)
    if (room > 0) return { entrant, refusal: undefined, runId: parts.newId() }
    return { entrant, refusal: isOnce(automation) ? 'once' : 'too_often', runId: undefined }
  })
  await start(parts, tx, automation, entries, contacts, { triggerType, stepsDone })
  return entries
}

async function findEntering(
  { db }: Tx,
  { workspaceId }: Automation,
  entrants: readonly Entrant[],
): Promise<ReadonlyMap<string, Contact>> {
  const audience = await findAudience(db, workspaceId)
  const ids = [...new Set(entrants.map(({ contactId }) => contactId.toLowerCase()))]
  const found = audience ? await findContactsById(db, audience.number, ids) : []
  return new Map(found.map(contact => [contact.id, contact]))
}

/** @returns ids */
async function findAllowed(
  { db }: Tx,
  { workspaceId, triggerConfig: { conditions } }: Automation,
  contacts: readonly Contact[],
  now: number,
): Promise<ReadonlySet<string>> {
  if (!conditions) return new Set(contacts.map(({ id }) => id))
  const seqs = contacts.map(({ seq }) => seq)
  const meant = await findMatching(db, readConditions(conditions), { workspaceId, now }, seqs)
  return new Set(contacts.filter(({ seq }) => meant.has(seq)).map(({ id }) => id))
}

/** @returns how often each of those who may enter may do so now, by id */
async function roomOf(
  { clock, log }: Parts,
  tx: Tx,
  automation: Automation,
  entrants: readonly Entrant[],
  meant: ReadonlySet<string>,
): Promise<Map<string, number>> {
  const now = clock.now()
  if (isOnce(automation)) {
    const fresh = await enterOnce(tx.db, automation.seq, [...meant], now)
    return new Map([...fresh].map(id => [id, 1]))
  }
  const times = new Map<string, number>()
  for (const { contactId } of entrants) {
    const id = contactId.toLowerCase()
    if (meant.has(id)) times.set(id, (times.get(id) ?? 0) + 1)
  }
  const counted = await countEntries(tx.db, automation.seq, times, now)
  const room = new Map<string, number>()
  for (const [id, entries] of counted) {
    const before = entries - (times.get(id) ?? 0)
    room.set(id, MOST_AN_HOUR - before)
    // Once an hour for each.
    if (before <= MOST_AN_HOUR && entries > MOST_AN_HOUR)
      tx.onCommit(() =>
        log.warn('automation entries limited', {
          automationId: automation.id,
          contactId: id,
          most: MOST_AN_HOUR,
        }),
      )
  }
  return room
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
  { triggerType, stepsDone }: Required<Way>,
): Promise<void> {
  const { workspaceId, isSandbox } = automation
  const startedAt = clock.now()
  const [first] = await findSteps(tx.db, automation.seq)
  const runs = entries.flatMap(({ entrant, runId }): NewRun[] => {
    const contact = contacts.get(entrant.contactId.toLowerCase())
    if (runId === undefined || !contact) return []
    return [
      {
        ...{ id: runId, automation: automation.seq, workspaceId, isSandbox, startedAt },
        ...{ contactId: contact.id, contactEmail: contact.email, step: first?.seq ?? null, stepsDone },
        ...{ triggerType, triggerData: entrant.triggerData },
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
      ...{ workspaceId, isSandbox, messageId: null, occurredAt: startedAt },
      payload: { automationId: automation.id, runId: run.id, contactId: run.contactId, triggerType },
    })),
  )
  tx.onCommit(onEvents)
  tx.onCommit(wakeRunner)
}
