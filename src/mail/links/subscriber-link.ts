/**
 * Links that say who follows them: unsubscribe, preferences, and the confirmation of what a form took.
 *
 * What they carry is sealed, so that no address can be read in a URL, in a log of a proxy or in a browser's history. The first
 * two never expire and need no row of their message: people unsubscribe years later. Pure.
 * Standards: those of `sealed-token.ts`; RFC 8058 (what unsubscribe links are used for).
 * Fails: reading never throws; making one throws a plain Error for what is no UUID, or an address too long to be one.
 */
import type { Subscriber } from '../unsubscribe-token.js'
import type { LinkKeys } from './link-keys.js'
import { unsealToken, SealedContent } from './sealed-token.js'
import { bytesToUuid, UUID_BYTES, uuidToBytes } from './token-bytes.js'

/** What somebody asked for by a form, and has to say once more from the mailbox that was named. */
export interface Confirmation {
  readonly workspaceId: string
  /** UUID of what waits for it. */
  readonly subjectId: string
  readonly recipient: string
  /** When the link was made, ms since epoch UTC: how long it is good for is for the reader to say. */
  readonly madeAt: number
}

const IDS_BYTES = 2 * UUID_BYTES
const MOMENT_BYTES = 6

export type SubscriberPurpose = 'unsubscribe' | 'preferences'

const USES = { unsubscribe: 0, preferences: 1 } as const

/** The tokens of one subscriber: asked for one by one, signed once. */
export class SubscriberTokens {
  private readonly sealing: SealedContent

  constructor(keys: LinkKeys, { workspaceId, messageId, recipient }: Subscriber) {
    this.sealing = new SealedContent(keys, 'subscriber', encodeContent(workspaceId, messageId, recipient))
  }

  token(purpose: SubscriberPurpose): string {
    return this.sealing.token(USES[purpose])
  }
}

export function makeSubscriberToken(
  keys: LinkKeys,
  purpose: SubscriberPurpose,
  subscriber: Subscriber,
): string {
  return new SubscriberTokens(keys, subscriber).token(purpose)
}

/** @returns undefined where we did not make the token for this purpose */
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
  return new SealedContent(keys, 'confirm', encodeContent(workspaceId, subjectId, recipient, moment)).token(0)
}

/** @returns undefined where we did not make the token */
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
