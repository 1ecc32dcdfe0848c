/**
 * Applies the From rules (`sender.ts`) to each address in a relayed message's From.
 *
 * From is kept if every address is at a verified domain of the workspace. Otherwise the appliance's shared address replaces it and
 * the authors become Reply-To. A domain shown in From signs, since DMARC compares the signature to From (RFC 7489 §3.1), not Sender.
 * Standards: RFC 5322 §3.6.2 (several authors need a Sender). Fails: AppError `domain_invalid`, `missing_from_email`.
 */
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { AppError } from '../../core/errors.js'
import type { NamedAddress } from '../../mail/address.js'
import type { HeaderEdits } from '../../mail/relay/edit-header.js'
import type { RelayedHeader, RelayedMailbox } from '../../mail/relay/relayed-header.js'
import type { Sender } from '../sender.js'
import type { SenderCache } from '../sender-cache.js'

export interface RelayedAuthor {
  /** The From of the edited header, and whose keys sign. */
  readonly sender: Sender
  readonly edits: Pick<HeaderEdits, 'fromToSet' | 'senderToSet' | 'removals'>
}

export async function authorOf(
  senders: SenderCache,
  workspace: ActingWorkspace,
  { from, sender: named }: RelayedHeader,
): Promise<RelayedAuthor> {
  const [first] = from
  if (!first) throw new AppError('missing_from_email', 'the message has no From', { path: 'From' })
  const own: Sender[] = []
  for (const author of oneOfEachDomain(from)) {
    const sender = await senders.sender(workspace, asked(author, author === first ? first.name : undefined))
    if (!isSentBy(author, sender)) {
      const shared = await senders.sender(workspace, asked(author, first.name))
      return { sender: shared, edits: { fromToSet: shared.from } }
    }
    own.push(sender)
  }
  const signing = own[0] as Sender
  if (named === undefined || (await isOwn(senders, workspace, named))) return { sender: signing, edits: {} }
  // Some mail clients show Sender before From. A single author needs none.
  return {
    sender: signing,
    edits: from.length === 1 ? { removals: ['sender'] } : { senderToSet: toNamed(first) },
  }
}

/** The rules are per domain, and From may hold a thousand addresses. */
function oneOfEachDomain(from: readonly RelayedMailbox[]): readonly RelayedMailbox[] {
  const byDomain = new Map<string, RelayedMailbox>()
  for (const author of from)
    if (!byDomain.has(author.address.domain)) byDomain.set(author.address.domain, author)
  return [...byDomain.values()]
}

async function isOwn(
  senders: SenderCache,
  workspace: ActingWorkspace,
  mailbox: RelayedMailbox,
): Promise<boolean> {
  try {
    return isSentBy(mailbox, await senders.sender(workspace, asked(mailbox, undefined)))
  } catch (error) {
    if (error instanceof AppError && error.code === 'domain_invalid') return false
    throw error
  }
}

/** Whether the author was not replaced. The shared address as author counts as its own sender. */
function isSentBy({ address }: RelayedMailbox, { from }: Sender): boolean {
  return address.address.toLowerCase() === from.address.toLowerCase()
}

function asked({ address }: RelayedMailbox, name: string | undefined) {
  return { fromAddress: address.address, name }
}

function toNamed({ name, address }: RelayedMailbox): NamedAddress {
  return name === undefined ? { address: address.address } : { name, address: address.address }
}
