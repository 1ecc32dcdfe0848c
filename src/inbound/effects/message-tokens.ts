/**
 * Which message a signed token stands for: looks it up and verifies the token against what is stored of it.
 *
 * Called by the receiver at RCPT and by the processor for tokens inside a returned mail. Never changes anything. All
 * versions of the key are honoured, so that a rotation loses no bounce. Fails: with undefined for what is not ours.
 */
import type { Queries } from '../../db/database.js'
import { verifyReturnPath, type ReturnPathKey, type ReturnPathToken } from '../../mail/return-path.js'
import { verifyUnsubscribeToken, type UnsubscribeToken } from '../../mail/unsubscribe-token.js'
import { findAnyMessage, type Message } from '../../messages/message-store.js'

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
