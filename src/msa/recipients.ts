/**
 * Sorts the recipients of one request: who is mailed, and who is skipped for which reason. None of them fails the
 * others.
 */
import type { Queries } from '../db/database.js'
import { findSuppressed } from '../deliverability/suppression-store.js'
import { normalizedAddress, parseAddress } from '../mail/address.js'
import type { SkipReason } from '../queue/message-status-store.js'

export interface Recipient {
  /** As the caller wrote it; that is how the answer names it. */
  readonly asked: string
  /** As it is mailed: domain as A-labels; the same as `asked` for an invalid one. */
  readonly address: string
  /** What shares a budget of connections; empty for an invalid address. */
  readonly destination: string
  readonly skip: SkipReason | null
}

export async function sortRecipients(
  db: Queries,
  workspaceId: string,
  asked: readonly string[],
): Promise<Recipient[]> {
  const seen = new Set<string>()
  const sorted = asked.map((text): Recipient => {
    const parsed = parseAddress(text)
    if (!parsed) return { asked: text, address: text, destination: '', skip: 'invalid' }
    const normalized = normalizedAddress(parsed.address)
    const skip = seen.has(normalized) ? 'duplicate' : null
    seen.add(normalized)
    return { asked: text, address: parsed.address, destination: parsed.domain, skip }
  })
  const suppressed = await findSuppressed(db, workspaceId, [...seen])
  return sorted.map(recipient =>
    recipient.skip === null && suppressed.has(normalizedAddress(recipient.address))
      ? { ...recipient, skip: 'suppressed' }
      : recipient,
  )
}
