/** Sorts recipients: who is mailed, who is skipped for which reason, and whose addresses they are. None of them fails the others. */
import { findContactIds } from '../audience/contacts/contact-store.js'
import type { Queries } from '../db/database.js'
import { findSuppressed } from '../deliverability/suppressions/suppression-store.js'
import { normalizedAddress, parseAddress } from '../mail/address.js'
import type { SkipReason } from '../messages/message-status.js'

export interface Recipient {
  /** As the caller gave it: by SMTP as it was written. */
  readonly asked: string
  /** As it is mailed: domain as A-labels; the same as `asked` for an invalid one. */
  readonly address: string
  /** What shares a budget of connections; empty for an invalid address. */
  readonly destination: string
  /** In the form in which addresses are compared; empty for an invalid one. */
  readonly compared: string
  readonly skip: SkipReason | null
  /** The contact who has the address now; absent where nobody has. */
  readonly contactId?: string
}

/**
 * Those of many submissions, who are asked after at once; a repeated one is one that repeats within its submission.
 *
 * @param lists addresses as they were given, by submission
 * @param isMarketing who unsubscribed is skipped as well
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
  /** Where it is known already whose addresses they are: ids by the address as it was given. */
  readonly contacts: ReadonlyMap<string, string> | undefined
}

/** Says of all of them, in one query at most, whose addresses they are. */
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

/** @param all gets the addresses of those who may be mailed, in the form in which they are compared */
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
