/**
 * Finds the message a returned mail is about.
 *
 * Tried in this order: the signed address it was sent to, tokens in the mail (our field in the returned part, the
 * envelope id, the return path in the part or the report), the Message-ID. The Message-ID is not signed and appears in
 * replies and archives, so a match by it alone is only reported and has no effect. A token that is not ours ends the
 * search: the mail is forged.
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
import type { ReturnedFinding } from '../parser-protocol.js'
import type { Queries } from '../../db/database.js'
import { verifyUnsubscribeToken, type UnsubscribeToken } from '../../mail/unsubscribe-token.js'

export type Messages = ReadonlyMap<string, Message>

export interface MatchContext {
  readonly messages: Messages
  readonly tokens: MessageTokens
  /** Right-hand side of our Message-IDs. */
  readonly hostname: string
}

/** Ids of all messages (or contents, for copies) it could be about, to be looked up together. */
export function possibleMessages(returned: ReturnedFinding, hostname: string): string[] {
  const own = ownMessageId(returned, hostname)
  return [...tokensOf(returned).map(({ messageId }) => messageId), ...(own === undefined ? [] : [own])]
}

export interface Match {
  readonly message: Message
  /** Proven by one of our tokens. */
  readonly isConfirmed: boolean
}

/** @param addressed message id of the signed address, if it was sent to one */
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
 * Copies of a mail share a Message-ID, which is the id of their content. Only a recipient named in the report can be
 * meant; the To field they share proves nothing.
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

/** Redacted tokens are ignored. */
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

  /** Verifies signed tokens against the stored message, with every key version, so that a rotation loses no bounce. */
  constructor(reader: Queries, keys: readonly ReturnPathKey[]) {
    this.reader = reader
    this.keys = keys
  }

  /** The message, if the token is valid for it. */
  async find(signed: SignedAddress): Promise<Message | undefined> {
    const { keyVersion, messageId } = signed.token
    // An unknown key version needs no lookup.
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
