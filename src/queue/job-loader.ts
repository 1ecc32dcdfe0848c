/**
 * Makes complete delivery jobs of claimed queue entries: message, content, keys, return path.
 *
 * What many messages share (content, keys) is read once and kept for a while, bounded in bytes and time.
 */
import type { Queries } from '../db/database.js'
import type { ComposedContent } from '../mail/compose.js'
import type { DkimKey } from '../mail/dkim-sign.js'
import type { Clock } from '../world/clock.js'
import type { DeliveryJob } from './delivery-agent.js'
import { findContents, findMessages, type MessageContent } from './message-store.js'
import type { QueueEntry } from './queue-store.js'

export interface JobLoaderParts {
  readonly reader: Queries
  readonly clock: Clock
  /** Envelope sender for a message and its recipient. */
  readonly returnPath: (messageId: string, recipient: string) => string
  /** The keys that sign for these domains (by domain id). */
  readonly readSigningKeys: (domainIds: readonly string[]) => Promise<Map<string, DkimKey[]>>
}

interface LoadedContent {
  readonly composed: ComposedContent
  readonly signingDomainId: string | null
  readonly bytes: number
}

const KEPT_CONTENT_BYTES = 32 * 1_024 * 1_024
/** A rotation takes effect within this time. */
const KEPT_KEYS_MS = 5_000

export class JobLoader {
  private readonly parts: JobLoaderParts
  private readonly contents = new Map<string, LoadedContent>()
  private contentBytes = 0
  private readonly keys = new Map<string, { readonly keys: readonly DkimKey[]; readonly until: number }>()

  constructor(parts: JobLoaderParts) {
    this.parts = parts
  }

  /** In no particular order. An entry whose message is gone gives no job. */
  async load(entries: readonly QueueEntry[]): Promise<DeliveryJob[]> {
    const messages = await findMessages(
      this.parts.reader,
      entries.map(entry => entry.messageId),
    )
    const contents = await this.loadContents([...new Set(messages.map(message => message.contentId))])
    const keys = await this.loadKeys([...contents.values()])
    const attempts = new Map(entries.map(entry => [entry.messageId, entry.attempts]))
    return messages.flatMap(message => {
      const content = contents.get(message.contentId)
      if (!content) return []
      return [
        {
          messageId: message.id,
          workspaceId: message.workspaceId,
          envelopeSender: this.parts.returnPath(message.id, message.recipient),
          recipient: message.recipient,
          attempt: attempts.get(message.id) ?? 1,
          acceptedAt: message.createdAt,
          content: content.composed,
          signingKeys: content.signingDomainId === null ? [] : (keys.get(content.signingDomainId) ?? []),
        },
      ]
    })
  }

  private async loadContents(ids: readonly string[]): Promise<Map<string, LoadedContent>> {
    const missing = ids.filter(id => !this.contents.has(id))
    for (const content of await findContents(this.parts.reader, missing))
      this.keep(content.id, loaded(content))
    const found = new Map<string, LoadedContent>()
    for (const id of ids) {
      const content = this.contents.get(id)
      if (content) found.set(id, content)
    }
    this.dropOldest()
    return found
  }

  private keep(id: string, content: LoadedContent): void {
    this.contents.set(id, content)
    this.contentBytes += content.bytes
  }

  private dropOldest(): void {
    for (const [id, { bytes }] of this.contents) {
      if (this.contentBytes <= KEPT_CONTENT_BYTES) break
      this.contents.delete(id)
      this.contentBytes -= bytes
    }
  }

  private async loadKeys(contents: readonly LoadedContent[]): Promise<Map<string, readonly DkimKey[]>> {
    const now = this.parts.clock.now()
    const ids = new Set(contents.flatMap(content => content.signingDomainId ?? []))
    const stale = [...ids].filter(id => (this.keys.get(id)?.until ?? 0) <= now)
    if (stale.length > 0) {
      const fresh = await this.parts.readSigningKeys(stale)
      if (this.keys.size > 1_000) this.keys.clear()
      for (const id of stale) this.keys.set(id, { keys: fresh.get(id) ?? [], until: now + KEPT_KEYS_MS })
    }
    return new Map([...ids].map(id => [id, this.keys.get(id)?.keys ?? []]))
  }
}

function loaded(content: MessageContent): LoadedContent {
  const { from, replyTo, subject, html, text } = content
  return {
    composed: {
      kind: 'composed',
      from,
      ...(replyTo ? { replyTo } : {}),
      subject,
      ...(html === undefined ? {} : { html }),
      ...(text === undefined ? {} : { text }),
    },
    signingDomainId: content.signingDomainId,
    // Strings take up to two bytes a character in memory.
    bytes: 2 * (subject.length + (html?.length ?? 0) + (text?.length ?? 0)) + 1_000,
  }
}
