/**
 * Which message a returned mail is about.
 *
 * Called by the processor inside its transaction, with the messages that might be meant already looked up. In this order:
 * the signed address that it came to, the tokens that stand in the mail (our field in the returned part, the envelope id, the
 * return path as the part or the report tells it), and last the Message-ID. That one is not signed and travels in replies and
 * archives: anybody can write a report with it, so a message found by it alone is told, and nothing follows for it. A token
 * that is not ours ends the search: mail with one is forged, whatever else it says. Pure.
 */
import { isUuid } from '../../core/ids.js'
import { normalizedAddress } from '../../mail/address.js'
import { parseNamedAddress } from '../../mail/named-address.js'
import {
  parseReturnPathLocal,
  type ReturnPathToken,
  verifyReturnPath,
  type ReturnPathKey,
} from '../../mail/return-path.js'
import { type Message, findAnyMessage } from '../../messages/message-store.js'
import type { ReturnedFinding } from '../reading/parser-protocol.js'
import type { Queries } from '../../db/database.js'
import { verifyUnsubscribeToken, type UnsubscribeToken } from '../../mail/unsubscribe-token.js'

export type Messages = ReadonlyMap<string, Message>

export interface MatchContext {
  readonly messages: Messages
  readonly tokens: MessageTokens
  /** Right side of our Message-IDs. */
  readonly hostname: string
}

/** Ids of all messages that it could be about, or of their contents where they are copies; to be looked up at once. */
export function possibleMessages(returned: ReturnedFinding, hostname: string): string[] {
  const own = ownMessageId(returned, hostname)
  return [...tokensOf(returned).map(({ messageId }) => messageId), ...(own === undefined ? [] : [own])]
}

export interface Match {
  readonly message: Message
  /** By a token of ours; otherwise somebody only says so. */
  readonly isConfirmed: boolean
}

/** @param addressed what the signed address stands for, where the mail came to one */
export function matchMessage(
  { messages, tokens, hostname }: MatchContext,
  returned: ReturnedFinding,
  addressed?: string,
): Match | 'forged' | 'unmatched' {
  const known = addressed === undefined ? undefined : messages.get(addressed)
  if (known) return { message: known, isConfirmed: true }
  for (const token of tokensOf(returned)) {
    const message = messages.get(token.messageId)
    if (!message || !tokens.isFor({ kind: 'return_path', token }, message)) return 'forged'
    return { message, isConfirmed: true }
  }
  const message = byMessageId(messages, returned, ownMessageId(returned, hostname))
  return message ? { message, isConfirmed: false } : 'unmatched'
}

/**
 * A mail and its copies share a Message-ID, which is then the id of their content: only the recipient whom the report names can
 * be meant, and the To that they have in common says nothing.
 */
function byMessageId(
  messages: Messages,
  returned: ReturnedFinding,
  own: string | undefined,
): Message | undefined {
  const mail = [...messages.values()].filter(({ id, contentId }) => id === own || contentId === own)
  const named = namedRecipients(returned)
  const shown =
    mail.length === 1 && returned.to !== undefined ? parseNamedAddress(returned.to)?.address : undefined
  const about = new Set([...named, ...(shown === undefined ? [] : [normalizedAddress(shown)])])
  const [only, ...others] = mail.filter(({ recipient }) => about.has(normalizedAddress(recipient)))
  return others.length === 0 ? only : undefined
}

/** One that was redacted is no token any more, and is passed over. */
function tokensOf({ token, envelopeId, returnPaths = [] }: ReturnedFinding): ReturnPathToken[] {
  return [token, envelopeId, ...returnPaths].flatMap(text => {
    const read = text === undefined ? undefined : parseReturnPathLocal(text.split('@', 1)[0] ?? '')
    return read ?? []
  })
}

function ownMessageId({ messageId = '' }: ReturnedFinding, hostname: string): string | undefined {
  const at = messageId.lastIndexOf('@')
  const id = messageId.slice(0, Math.max(0, at)).toLowerCase()
  return isUuid(id) && messageId.slice(at + 1).toLowerCase() === hostname ? id : undefined
}

function namedRecipients({ recipients }: ReturnedFinding): string[] {
  return recipients
    .flatMap(one => [one.recipient, one.originalRecipient])
    .flatMap(address => (address === undefined ? [] : [normalizedAddress(address)]))
}

export type SignedAddress =
  | { readonly kind: 'return_path'; readonly token: ReturnPathToken }
  | { readonly kind: 'unsubscribe'; readonly token: UnsubscribeToken }

export class MessageTokens {
  private readonly reader: Queries
  private readonly keys: readonly ReturnPathKey[]

  /** @param keys every version */
  constructor(reader: Queries, keys: readonly ReturnPathKey[]) {
    this.reader = reader
    this.keys = keys
  }

  /** The message, where the token was made by us for it. */
  async find(signed: SignedAddress): Promise<Message | undefined> {
    const { keyVersion, messageId } = signed.token
    // A key that there never was spares the look-up.
    if (!this.keys.some(({ version }) => version === keyVersion)) return undefined
    const message = await findAnyMessage(this.reader, messageId)
    return message && this.isFor(signed, message) ? message : undefined
  }

  isFor(signed: SignedAddress, message: Message): boolean {
    if (signed.token.messageId !== message.id) return false
    return signed.kind === 'return_path'
      ? verifyReturnPath(signed.token, message.recipient, this.keys)
      : verifyUnsubscribeToken(
          signed.token,
          { workspaceId: message.workspaceId, messageId: message.id, recipient: message.recipient },
          this.keys,
        )
  }
}
