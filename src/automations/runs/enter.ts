/**
 * Contacts enter an automation: the one way in, for triggers, the API and other automations.
 *
 * In the transaction of whoever brings them, for one as for hundreds: rows, count and events of all are a few statements. Whom its
 * conditions do not mean does not enter, nor, where its frequency is `once`, who has been in it before. The runner does the steps.
 */
import { findAudience } from '../../audience/audience-store.js'
import type { Contact } from '../../audience/contacts/contact.js'
import { findContactsById } from '../../audience/contacts/contact-store.js'
import { findMeant } from '../../audience/segments/match-store.js'
import { readConditions } from '../../audience/segments/read-conditions.js'
import type { Tx } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import type { FlowParts } from '../automation-parts.js'
import type { Automation } from '../flows/automation.js'
import { changeRunCounts } from '../flows/automation-store.js'
import { findSteps } from '../flows/step-store.js'
import { enterOnce, insertRuns, type NewRun } from './run-store.js'

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
export type Refusal = 'no_contact' | 'conditions' | 'once'

export interface Entry {
  readonly entrant: Entrant
  /** Of the run; undefined where it was refused. */
  readonly runId: string | undefined
  readonly refusal: Refusal | undefined
}

type Parts = Pick<FlowParts, 'clock' | 'newId' | 'onEvents' | 'wakeRunner'>

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
  const isOnce = automation.triggerConfig.frequency === 'once'
  const fresh = isOnce ? await enterOnce(tx.db, automation.seq, [...meant]) : meant
  const entered = new Set<string>()
  const entries = entrants.map((entrant): Entry => {
    const id = entrant.contactId.toLowerCase()
    const refusal = !contacts.has(id)
      ? 'no_contact'
      : !meant.has(id)
        ? 'conditions'
        : isOnce && (!fresh.has(id) || entered.has(id))
          ? 'once'
          : undefined
    if (refusal === undefined) entered.add(id)
    return { entrant, refusal, runId: refusal === undefined ? parts.newId() : undefined }
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
  const meant = await findMeant(db, readConditions(conditions), { workspaceId, now }, seqs)
  return new Set(contacts.filter(({ seq }) => meant.has(seq)).map(({ id }) => id))
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
