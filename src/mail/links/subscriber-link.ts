/**
 * Links that identify their subscriber: unsubscribe, preferences, and form confirmation.
 *
 * Their content is encrypted, so that no address appears in URLs, proxy logs or browser history. Unsubscribe and
 * preferences links never expire and need no stored message, since people unsubscribe years later.
 * Standards: those of `token.ts`; RFC 8058. Creating one throws if an id is not a UUID or the address is too long.
 */
import type { Subscriber } from '../unsubscribe-token.js'
import type { LinkKeys } from './link-keys.js'
import { bytesToUuid, sealToken, unsealToken, UUID_BYTES, uuidToBytes } from './token.js'

/** A form submission to be confirmed from the mailbox it named. */
export interface Confirmation {
  readonly workspaceId: string
  /** Id of the submission. */
  readonly subjectId: string
  readonly recipient: string
  /** Creation time, ms since epoch UTC; the reader decides about expiry. */
  readonly madeAt: number
}

const IDS_BYTES = 2 * UUID_BYTES
const MOMENT_BYTES = 6

export type SubscriberPurpose = 'unsubscribe' | 'preferences'

const USES = { unsubscribe: 0, preferences: 1 } as const

export function makeSubscriberToken(
  keys: LinkKeys,
  purpose: SubscriberPurpose,
  { workspaceId, messageId, recipient }: Subscriber,
): string {
  return sealToken(keys, 'subscriber', USES[purpose], encodeContent(workspaceId, messageId, recipient))
}

/** @returns undefined unless we made the token for this purpose */
export function readSubscriberToken(
  keys: LinkKeys,
  purpose: SubscriberPurpose,
  text: string,
): Subscriber | undefined {
  const content = unsealToken(keys, 'subscriber', USES[purpose], text)
  if (!content || content.length <= IDS_BYTES) return undefined
  const { workspaceId, id, recipient } = decodeContent(content, 0)
  return { workspaceId, messageId: id, recipient }
}

export function makeConfirmationToken(keys: LinkKeys, confirmation: Confirmation): string {
  const { workspaceId, subjectId, recipient, madeAt } = confirmation
  const moment = Buffer.alloc(MOMENT_BYTES)
  moment.writeUIntBE(madeAt, 0, MOMENT_BYTES)
  return sealToken(keys, 'confirm', 0, encodeContent(workspaceId, subjectId, recipient, moment))
}

/** @returns undefined unless we made the token */
export function readConfirmationToken(keys: LinkKeys, text: string): Confirmation | undefined {
  const content = unsealToken(keys, 'confirm', 0, text)
  if (!content || content.length <= MOMENT_BYTES + IDS_BYTES) return undefined
  const { workspaceId, id, recipient } = decodeContent(content, MOMENT_BYTES)
  return { workspaceId, subjectId: id, recipient, madeAt: content.readUIntBE(0, MOMENT_BYTES) }
}

function encodeContent(workspaceId: string, id: string, recipient: string, before = Buffer.alloc(0)): Buffer {
  return Buffer.concat([before, uuidToBytes(workspaceId), uuidToBytes(id), Buffer.from(recipient)])
}

function decodeContent(content: Buffer, from: number) {
  return {
    workspaceId: bytesToUuid(content.subarray(from)),
    id: bytesToUuid(content.subarray(from + UUID_BYTES)),
    recipient: content.toString('utf8', from + IDS_BYTES),
  }
}
