/**
 * Keeps contacts consistent with suppressions, in the transaction that changes the suppression.
 *
 * Injected into `deliverability/`, which must not depend on the audience. A change applies to the contact that has the address now, if any;
 * without an effect there is no event. A domain entry may affect any number of contacts: the first step is part of the transaction, a
 * job does the rest (`suppressed-domains.ts`).
 */
import type { Tx } from '../../db/database.js'
import {
  type ContactSuppressions,
  type SuppressionChange,
  isOptOut,
} from '../../deliverability/suppressions/suppressions.js'
import { findSuppressionsOf, type Suppression } from '../../deliverability/suppressions/suppression-store.js'
import type { Acting } from '../audience-parts.js'
import { findAudience } from '../audience-store.js'
import type { Contact } from './contact.js'
import { findContactsByEmail } from './contact-store.js'
import { changeContacts } from './contacts.js'
import { bouncedSince, NOT_BOUNCED, OPTED_OUT, subscriptionUnder } from './standing.js'
import { followDomains } from './suppressed-domains.js'

/** @param onEvents called after events were appended */
export function followSuppressions(onEvents: () => void = () => {}): ContactSuppressions {
  return {
    async suppressed(tx, entries, change) {
      for (const workspaceId of new Set(entries.map(entry => entry.workspaceId))) {
        const own = entries.filter(entry => entry.workspaceId === workspaceId)
        const [domains, addresses] = [own.filter(isDomain), own.filter(entry => !isDomain(entry))]
        await followAddresses(tx, { ...change, workspaceId }, addresses)
        const [domain, ...others] = domains
        // A single entry comes from a request; many come from an import, whose transaction must stay short.
        if (domain) await followDomains(tx, { ...change, workspaceId }, domain.createdAt, others.length === 0)
      }
      tx.onCommit(onEvents)
    },
    async released(tx, entry, change) {
      const { workspaceId, email, createdAt } = entry
      const acting = { ...change, workspaceId }
      if (isDomain(entry)) await followDomains(tx, acting, createdAt, true)
      else await releaseAddress(tx, acting, email, createdAt)
      tx.onCommit(onEvents)
    },
  }
}

function isDomain({ email }: Pick<Suppression, 'email'>): boolean {
  return email.startsWith('@')
}

/** An unsubscribe by the recipient: removing a suppression never undoes it. */
export async function optOut(tx: Tx, acting: Acting, email: string, at: number): Promise<void> {
  await changeByAddress(tx, acting, [email], at, () => OPTED_OUT)
}

async function followAddresses(
  tx: Tx,
  acting: SuppressionChange & Acting,
  entries: readonly Suppression[],
): Promise<void> {
  const byEmail = new Map<string, Suppression[]>()
  for (const entry of entries) byEmail.set(entry.email, [...(byEmail.get(entry.email) ?? []), entry])
  const at = Math.max(...entries.map(({ createdAt }) => createdAt))
  await changeByAddress(tx, acting, [...byEmail.keys()], at, contact =>
    (byEmail.get(contact.email) ?? []).reduce(suppressedBy, contact),
  )
}

function suppressedBy(contact: Contact, entry: Suppression): Contact {
  if (entry.reason === 'hard_bounce') return { ...contact, ...bouncedSince(entry.createdAt) }
  if (isOptOut(entry)) return { ...contact, ...OPTED_OUT }
  return { ...contact, subscribed: false, suspended: contact.subscribed || contact.suspended }
}

async function releaseAddress(tx: Tx, acting: Acting, email: string, at: number): Promise<void> {
  const standing = (await findSuppressionsOf(tx.db, acting.workspaceId, [email])).get(email)
  await changeByAddress(tx, acting, [email], at, contact => ({
    ...NOT_BOUNCED,
    ...subscriptionUnder(contact, standing),
  }))
}

async function changeByAddress(
  tx: Tx,
  acting: Acting,
  emails: readonly string[],
  at: number,
  change: (contact: Contact) => Partial<Contact>,
): Promise<void> {
  if (emails.length === 0) return
  const audience = await findAudience(tx.db, acting.workspaceId)
  if (!audience || audience.contacts === 0) return
  const contacts = await findContactsByEmail(tx.db, audience.number, emails)
  const changes = contacts.map(before => ({
    before,
    after: { ...before, ...change(before), updatedAt: Math.max(at, before.updatedAt) },
  }))
  await changeContacts(tx, acting, audience.number, changes)
}
