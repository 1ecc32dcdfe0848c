/**
 * Which message a returned mail is about.
 *
 * Called by the processor inside its transaction, with the messages that might be meant already looked up. In this order:
 * the signed address that it came to, our field in the returned part, the envelope id, and last the Message-ID, which is
 * not signed and counts only where the recipient is the right one as well. A token that is not ours ends the search: mail
 * with one is forged, whatever else it says. Pure.
 */
import { isUuid } from '../core/ids.js'
import { normalizedAddress } from '../mail/address.js'
import { parseNamedAddress } from '../mail/named-address.js'
import { parseReturnPathLocal, type ReturnPathToken } from '../mail/return-path.js'
import type { Message } from '../queue/message-store.js'
import type { MessageTokens } from './message-tokens.js'
import type { ReturnedFinding } from './parser-protocol.js'

export type Messages = ReadonlyMap<string, Message>

export interface Matching {
  readonly messages: Messages
  readonly tokens: MessageTokens
  /** Right side of our Message-IDs. */
  readonly hostname: string
}

/** Ids of all messages that it could be about, to be looked up at once. */
export function possibleMessages(returned: ReturnedFinding, hostname: string): string[] {
  const own = ownMessageId(returned, hostname)
  return [...tokensOf(returned).map(({ messageId }) => messageId), ...(own === undefined ? [] : [own])]
}

/** @param addressed what the signed address stands for, where the mail came to one */
export function matchMessage(
  { messages, tokens, hostname }: Matching,
  returned: ReturnedFinding,
  addressed?: string,
): Message | 'forged' | 'unmatched' {
  const known = addressed === undefined ? undefined : messages.get(addressed)
  if (known) return known
  for (const token of tokensOf(returned)) {
    const message = messages.get(token.messageId)
    return message && tokens.isFor({ kind: 'return_path', token }, message) ? message : 'forged'
  }
  const own = messages.get(ownMessageId(returned, hostname) ?? '')
  return own && isAbout(returned, own.recipient) ? own : 'unmatched'
}

/** One that was redacted is no token any more, and is passed over. */
function tokensOf({ token, envelopeId }: ReturnedFinding): ReturnPathToken[] {
  return [token, envelopeId].flatMap(text => {
    const read = text === undefined ? undefined : parseReturnPathLocal(text.split('@', 1)[0] ?? '')
    return read ?? []
  })
}

function ownMessageId({ messageId = '' }: ReturnedFinding, hostname: string): string | undefined {
  const at = messageId.lastIndexOf('@')
  const id = messageId.slice(0, Math.max(0, at)).toLowerCase()
  return isUuid(id) && messageId.slice(at + 1).toLowerCase() === hostname ? id : undefined
}

function isAbout({ recipients, to }: ReturnedFinding, recipient: string): boolean {
  const wanted = normalizedAddress(recipient)
  const shown = to === undefined ? undefined : parseNamedAddress(to)?.address
  return [...recipients.flatMap(one => [one.recipient, one.originalRecipient]), shown].some(
    address => address !== undefined && normalizedAddress(address) === wanted,
  )
}
