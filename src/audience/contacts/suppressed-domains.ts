/**
 * Applies suppressions of whole domains to contacts, in steps of a few milliseconds.
 *
 * A change to such an entry starts a pass over the workspace's contacts. The first step is part of the transaction that makes the change,
 * so that small audiences are consistent at once; a job does the rest, with its progress in `suppression_sweeps`. Several entries share one
 * pass. Contacts created or readdressed meanwhile check the entry themselves.
 */
import type { Database, Tx } from '../../db/database.js'
import { domainEntry, findSuppressionsOf } from '../../deliverability/suppressions/suppression-store.js'
import { pauseFor, type Clock } from '../../world/time/clock.js'
import { PIECE, type Acting } from '../audience-parts.js'
import { contactsOf, findAudience } from '../audience-store.js'
import { changeContacts } from './contacts.js'
import { findContactsBySeq } from './contact-store.js'
import { subscriptionUnder } from './standing.js'
import {
  deleteSuppressionSweep,
  nextSuppressionSweep,
  putSuppressionSweep,
  subscriptionsAfter,
  type SubscriptionRow,
} from './suppression-sweep-store.js'

/** Contacts scanned per step, of which at most `PIECE` are changed. */
const LOOKED_AT = 2_000
/** Pause between steps, for other writers. */
const REST_MS = 2

/** @param isNow whether to run the first step in this transaction */
export async function followDomains(tx: Tx, acting: Acting, at: number, isNow: boolean): Promise<void> {
  const audience = await findAudience(tx.db, acting.workspaceId)
  if (!audience || audience.contacts === 0) return
  const { first } = contactsOf(audience.number)
  const position = isNow ? await step(tx, acting, audience.number, first, at) : first
  if (position !== undefined) await putSuppressionSweep(tx.db, { ...acting, position })
  else await deleteSuppressionSweep(tx.db, acting.workspaceId)
}

/** The job: continues all passes. @param stopping ends it after the current step */
export async function sweepSuppressedDomains(
  { database, clock, onEvents }: { database: Database; clock: Clock; onEvents: () => void },
  stopping: AbortSignal,
): Promise<void> {
  let isLeft = true
  while (isLeft && !stopping.aborted) {
    if (!(await nextSuppressionSweep(database.reader))) return
    isLeft = await database.write(
      async tx => {
        const sweep = await nextSuppressionSweep(tx.db)
        if (!sweep) return false
        const { workspaceId, isSandbox, position } = sweep
        const acting: Acting = { workspaceId, isSandbox, source: 'api' }
        const audience = await findAudience(tx.db, workspaceId)
        const next = audience && (await step(tx, acting, audience.number, position, clock.now()))
        if (next === undefined) await deleteSuppressionSweep(tx.db, workspaceId)
        else await putSuppressionSweep(tx.db, { ...acting, position: next })
        tx.onCommit(onEvents)
        return true
      },
      { isLong: true },
    )
    await pauseFor(REST_MS)
  }
}

/** @param position number of the first contact to scan @returns the next position; undefined after the last step */
async function step(
  tx: Tx,
  acting: Acting,
  audience: number,
  position: number,
  at: number,
): Promise<number | undefined> {
  const range = { first: position, last: contactsOf(audience).last }
  const rows = await subscriptionsAfter(tx.db, range, LOOKED_AT)
  const domains = [...new Set(rows.map(({ email }) => domainEntry(email)))]
  const suppressed = await findSuppressionsOf(tx.db, acting.workspaceId, domains)
  const isOff = ({ email, subscribed, is_suspended: isSuspended }: SubscriptionRow) =>
    suppressed.has(domainEntry(email)) ? subscribed === 1 : isSuspended === 1
  const off = rows.filter(isOff)
  const chosen = off.slice(0, PIECE)
  const contacts = await findContactsBySeq(
    tx.db,
    chosen.map(({ seq }) => seq),
  )
  const standings = await findSuppressionsOf(
    tx.db,
    acting.workspaceId,
    contacts.map(({ email }) => email),
  )
  const changes = contacts.map(before => ({
    before,
    after: { ...before, ...subscriptionUnder(before, standings.get(before.email)), updatedAt: at },
  }))
  await changeContacts(tx, acting, audience, changes)
  const last =
    off.length > chosen.length ? chosen.at(-1) : rows.length === LOOKED_AT ? rows.at(-1) : undefined
  return last && last.seq + 1
}
