/** Classifies recipients: mailed or skipped, and which contact each one is. A bad recipient never fails the others. */
import { findContactIds } from '../audience/contacts/contact-store.js'
import type { Queries } from '../db/database.js'
import { findSuppressed } from '../deliverability/suppressions/suppression-store.js'
import { normalizedAddress, parseAddress } from '../mail/address.js'
import type { SkipReason } from '../messages/message-status.js'

export interface Recipient {
  /** As the caller gave it. */
  readonly asked: string
  /** As mailed, its domain as A-labels; equals `asked` if invalid. */
  readonly address: string
  /** Domain whose connection limits apply; empty if invalid. */
  readonly destination: string
  /** Normalized for comparison; empty if invalid. */
  readonly compared: string
  readonly skip: SkipReason | null
  /** The contact with this address, if any. */
  readonly contactId?: string
}

/**
 * Classifies several submissions' recipients with one suppression query. Duplicates are found within a submission only.
 *
 * @param lists addresses as given, by submission
 * @param isMarketing also skips unsubscribed addresses
 * @returns by submission, in the order given
 */
export async function sortRecipients(
  db: Queries,
  workspaceId: string,
  lists: readonly (readonly string[])[],
  isMarketing: boolean,
): Promise<Recipient[][]> {
  const all = new Set<string>()
  const sorted = lists.map(asked => readRecipients(asked, all))
  const suppressed = await findSuppressed(db, workspaceId, [...all], isMarketing)
  if (suppressed.size === 0) return sorted
  return sorted.map(recipients =>
    recipients.map(recipient =>
      recipient.skip === null && suppressed.has(recipient.compared)
        ? { ...recipient, skip: 'suppressed' }
        : recipient,
    ),
  )
}

export interface SortedList {
  readonly recipients: readonly Recipient[]
  /** Contact ids by the address as given, if the caller knows them. */
  readonly contacts: ReadonlyMap<string, string> | undefined
}

/** Adds contact ids to all recipients, with at most one query. */
export async function withContacts(
  db: Queries,
  workspaceId: string,
  lists: readonly SortedList[],
): Promise<readonly (readonly Recipient[])[]> {
  const emails = new Set<string>()
  for (const { recipients, contacts } of lists)
    if (!contacts) for (const one of recipients) if (one.skip !== 'invalid') emails.add(one.compared)
  const ids = await findContactIds(db, workspaceId, [...emails])
  return lists.map(({ recipients, contacts }) => {
    if ((contacts ?? ids).size === 0) return recipients
    return recipients.map(one => {
      if (one.skip === 'invalid') return one
      const contactId = contacts ? contacts.get(one.asked) : ids.get(one.compared)
      return contactId === undefined ? one : { ...one, contactId }
    })
  })
}

/** @param all receives the normalized valid addresses */
function readRecipients(asked: readonly string[], all: Set<string>): Recipient[] {
  const seen = new Set<string>()
  return asked.map((text): Recipient => {
    const parsed = parseAddress(text)
    if (!parsed) return { asked: text, address: text, destination: '', compared: '', skip: 'invalid' }
    const compared = normalizedAddress(parsed.address)
    const skip = seen.has(compared) ? 'duplicate' : null
    seen.add(compared)
    all.add(compared)
    return { asked: text, address: parsed.address, destination: parsed.domain, compared, skip }
  })
}
