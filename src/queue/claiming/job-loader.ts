/**
 * Builds delivery jobs from claimed queue entries: content, DKIM keys, return path and merge values.
 *
 * Content and keys are shared by many messages and cached, bounded in bytes and time. Just-accepted content is cached
 * without being read. If keys cannot be loaded, only the messages they sign are affected.
 */
import { hasTags } from '../../content/merge/parse-template.js'
import type { RecipientValues } from '../../content/rendering/merging.js'
import { given } from '../../core/given.js'
import { describeError } from '../../core/errors.js'
import type { Queries } from '../../db/database.js'
import type { ComposedContent, RelayedContent } from '../../mail/compose/compose.js'
import type { DkimKey } from '../../mail/dkim/dkim-sign.js'
import type { Clock } from '../../world/time/clock.js'
import {
  findContents,
  attachmentOctets,
  readAttachments,
  readRelayed,
  type AttachmentFacts,
  type MessageContent,
  type RelayedMessage,
} from '../../messages/content-store.js'
import type { DeliveryJob, JobContent } from '../delivery-agent.js'
import type { LoggedSubmission } from '../../messages/mail-log.js'
import { originOf, type MailOrigin } from '../../messages/mail-origin.js'
import type { QueueEntry } from '../queue-store.js'
import { findContactsOf } from '../../audience/contacts/contact-store.js'
import type { Contact } from '../../audience/contacts/contact.js'
import type { MergeContact } from '../../content/merge/merge-values.js'
import { findMergeSources } from '../../messages/message-store.js'

export interface JobLoaderParts {
  readonly reader: Queries
  readonly clock: Clock
  readonly returnPath: (messageId: string, recipient: string) => string
  /** Signing keys by domain id. @throws Error if a key cannot be decrypted */
  readonly readSigningKeys: (domainIds: readonly string[]) => Promise<Map<string, DkimKey[]>>
}

export interface Loaded {
  /** In no particular order; entries whose content is missing have none. */
  readonly jobs: DeliveryJob[]
  /** Why a message cannot be sent now, by message id. Shown in the trace, so it contains no secrets. */
  readonly faults: ReadonlyMap<string, string>
}

interface LoadedContent {
  readonly content: JobContent
  /** It has merge tags, so each message needs its own merge values. */
  readonly hasTags: boolean
  readonly signingDomainId: string | null
  readonly createdAt: number
  /** System mail is sent from `<>` (RFC 3464 §2: no report about a report). */
  readonly hasNullReturnPath: boolean
  readonly origin?: MailOrigin
  readonly submission: LoggedSubmission
  readonly bytes: number
}

interface CachedKeys {
  readonly keys: readonly DkimKey[]
  readonly fault: string | undefined
  readonly until: number
}

interface UnreadBody {
  /** Octets in memory once it is read. */
  readonly size: number
  read(): Promise<DeliveryJob['content']>
}

const CONTENT_CACHE_BYTES = 16 * 1_024 * 1_024
/** A key rotation takes effect within this time. */
const KEY_CACHE_MS = 5_000

export class JobLoader {
  private readonly parts: JobLoaderParts
  private readonly contents = new Map<string, LoadedContent>()
  private contentBytes = 0
  private readonly keys = new Map<string, CachedKeys>()
  /** Contents whose attachments or later parts are still in the database. */
  private readonly incomplete = new WeakMap<DeliveryJob['content'], UnreadBody>()

  constructor(parts: JobLoaderParts) {
    this.parts = parts
  }

  /** Caches content that was just committed: its messages are likely to be claimed next. */
  cache(content: MessageContent): void {
    // Parts and attachments are not cached; they are read for each delivery.
    if (!this.contents.has(content.id)) this.add(content.id, this.toLoaded(content))
    this.evict()
  }

  async load(entries: readonly QueueEntry[]): Promise<Loaded> {
    const contents = await this.loadContents([...new Set(entries.map(entry => entry.contentId))])
    await this.loadKeys([...contents.values()])
    const filled = entries.filter(({ contentId }) => contents.get(contentId)?.hasTags)
    const own = await findMergeValues(
      this.parts.reader,
      filled.map(({ messageId }) => messageId),
    )
    const jobs: DeliveryJob[] = []
    const faults = new Map<string, string>()
    for (const entry of entries) {
      const loaded = contents.get(entry.contentId)
      if (!loaded) continue
      const keys = loaded.signingDomainId === null ? undefined : this.keys.get(loaded.signingDomainId)
      if (keys?.fault !== undefined) faults.set(entry.messageId, keys.fault)
      jobs.push(this.toJob(entry, loaded, keys?.keys ?? [], own.get(entry.messageId)))
    }
    return { jobs, faults }
  }

  /** Octets that `complete` will read into memory. */
  unreadOctets(job: DeliveryJob): number {
    return this.incomplete.get(job.content)?.size ?? 0
  }

  async complete(job: DeliveryJob): Promise<DeliveryJob> {
    const missing = this.incomplete.get(job.content)
    return missing ? { ...job, content: await missing.read() } : job
  }

  private toJob(
    entry: QueueEntry,
    loaded: LoadedContent,
    signingKeys: readonly DkimKey[],
    mergeValues: RecipientValues | undefined,
  ): DeliveryJob {
    return {
      messageId: entry.messageId,
      workspaceId: entry.workspaceId,
      envelopeSender: loaded.hasNullReturnPath ? '' : this.parts.returnPath(entry.messageId, entry.recipient),
      recipient: entry.recipient,
      attempt: entry.attempts,
      acceptedAt: loaded.createdAt,
      content: loaded.content,
      signingKeys,
      submission: loaded.submission,
      ...given({ origin: loaded.origin, mergeValues, dueAt: entry.dueAt }),
    }
  }

  private async loadContents(ids: readonly string[]): Promise<Map<string, LoadedContent>> {
    const found = new Map<string, LoadedContent>()
    const missing: string[] = []
    for (const id of ids) {
      const kept = this.contents.get(id)
      if (kept) found.set(id, kept)
      else missing.push(id)
    }
    for (const content of await findContents(this.parts.reader, missing)) {
      // Retention never prunes queued content; if it did, an empty mail would be worse than none.
      if (content.isPruned) continue
      const loaded = this.toLoaded(content)
      this.add(content.id, loaded)
      found.set(content.id, loaded)
    }
    this.evict()
    return found
  }

  private add(id: string, content: LoadedContent): void {
    this.contents.set(id, content)
    this.contentBytes += content.bytes
  }

  private evict(): void {
    for (const [id, { bytes }] of this.contents) {
      if (this.contentBytes <= CONTENT_CACHE_BYTES) break
      this.contents.delete(id)
      this.contentBytes -= bytes
    }
  }

  private async loadKeys(contents: readonly LoadedContent[]): Promise<void> {
    const now = this.parts.clock.monotonic()
    const ids = new Set(contents.flatMap(content => content.signingDomainId ?? []))
    const stale = [...ids].filter(id => (this.keys.get(id)?.until ?? 0) <= now)
    if (stale.length === 0) return
    if (this.keys.size > 1_000) this.keys.clear()
    for (const [id, kept] of await this.readKeys(stale))
      this.keys.set(id, { ...kept, until: now + KEY_CACHE_MS })
  }

  /** Falls back to one domain at a time, so that one bad key affects only its own domain. */
  private async readKeys(ids: readonly string[]): Promise<[string, Omit<CachedKeys, 'until'>][]> {
    try {
      const fresh = await this.parts.readSigningKeys(ids)
      return ids.map(id => [id, { keys: fresh.get(id) ?? [], fault: undefined }])
    } catch (error) {
      const [only, ...others] = ids
      if (only === undefined) return []
      if (others.length === 0)
        return [[only, { keys: [], fault: `DKIM keys not available: ${describeError(error)}` }]]
      return (await Promise.all(ids.map(id => this.readKeys([id])))).flat()
    }
  }

  private unreadMessage(id: string, own: RelayedContent, relayed: RelayedMessage): UnreadBody {
    const { reader } = this.parts
    return {
      size: relayed.size,
      read: async () => ({ ...own, message: await readRelayed(reader, id, relayed) }),
    }
  }

  private unreadAttachments(
    id: string,
    own: ComposedContent,
    attachments: readonly AttachmentFacts[],
  ): UnreadBody {
    const { reader } = this.parts
    return {
      size: attachmentOctets(attachments),
      async read() {
        const octets = await readAttachments(reader, id, attachments)
        let start = 0
        return {
          ...own,
          attachments: attachments.map(({ size, ...facts }) => ({
            ...facts,
            octets: octets.subarray(start, (start += size)),
          })),
        }
      },
    }
  }

  private toLoaded(content: MessageContent): LoadedContent {
    const { signingDomainId, relayed } = content
    // The Date of a scheduled mail is the time it is sent.
    const facts = {
      signingDomainId,
      createdAt: content.scheduledAt ?? content.createdAt,
      origin: originOf(content),
      submission: { from: content.from.address, ...content.submittedBy },
      hasTags: content.merging !== undefined && [content.subject, content.html, content.text].some(hasTags),
    }
    if (relayed === undefined) {
      const composed = toComposed(content)
      if (content.attachments)
        this.incomplete.set(composed, this.unreadAttachments(content.id, composed, content.attachments))
      return { ...facts, content: composed, hasNullReturnPath: false, bytes: bytesOf(content) }
    }
    const { firstPart: message, size } = relayed
    const { subject, html, text, merging } = content
    const letter =
      html === undefined && text === undefined ? undefined : { subject, ...given({ html, text }) }
    const own: RelayedContent & JobContent = {
      kind: 'relayed',
      subject,
      message,
      ...given({ letter, merging }),
    }
    if (message.length < size) this.incomplete.set(own, this.unreadMessage(content.id, own, relayed))
    return {
      ...facts,
      content: own,
      hasNullReturnPath: relayed.submitter === undefined,
      bytes: message.length + bytesOf(content),
    }
  }
}

function toComposed(content: MessageContent): ComposedContent & JobContent {
  const { from, replyTo, subject, html, text, headers, addressees } = content
  return {
    kind: 'composed',
    from,
    ...(replyTo ? { replyTo } : {}),
    subject,
    ...given({ html, text, headers, addressees }),
    ...(addressees?.hasCopies ? { mailId: content.id } : {}),
    ...given({ merging: content.merging }),
  }
}

/** Strings take up to two bytes a character; parsed JSON takes more than its text. */
function bytesOf({ subject, html, text, merging }: MessageContent): number {
  const data = merging?.data === undefined ? 0 : 4 * JSON.stringify(merging.data).length
  return 2 * (subject.length + (html?.length ?? 0) + (text?.length ?? 0)) + data + 1_000
}

/**
 * Merge values of each message: its current contact, and data stored with the message.
 *
 * @returns by message id; messages without a contact have no contact values
 */
export async function findMergeValues(
  db: Queries,
  messageIds: readonly string[],
): Promise<ReadonlyMap<string, RecipientValues>> {
  if (messageIds.length === 0) return new Map()
  const sources = await findMergeSources(db, messageIds)
  const contacts = await findContactsOf(
    db,
    [...sources.values()].flatMap(({ contactId }) => contactId ?? []),
  )
  return new Map(
    [...sources].map(([id, { contactId, mergeData: data }]) => [
      id,
      given({ contact: toMergeContact(contacts.get(contactId ?? '')), data }),
    ]),
  )
}

function toMergeContact(contact: Contact | undefined): MergeContact | undefined {
  if (!contact) return undefined
  const { email, firstName, lastName, attributes } = contact
  return { email, firstName, lastName, attributes }
}
