/**
 * Erases a person from one workspace or all of them: `POST /contacts/erase`, `postroad erase`, and `postroad restore` for those erased
 * before.
 *
 * Works in steps of a few rows, each in a separate transaction, so that 100,000 messages do not block the writer. Idempotent: after a
 * crash the same request erases the rest. What survives: a suppression, under the address's SHA-256; figures that name nobody; events about
 * mail, with a placeholder for the address, since consumers still count them. Fails: as the database does.
 */
import type { Database } from '../../db/database.js'
import { eraseSuppressions } from '../../deliverability/suppressions/suppression-store.js'
import { recordActivity, type Actor } from '../../events/activity-store.js'
import { recordTransitions } from '../../messages/message-history.js'
import { nextTurn, type Clock } from '../../world/time/clock.js'
import { hashOf, readErased, registerErased } from './erased-register.js'
import {
  addressesAfter,
  capturedOf,
  contactsToErase,
  eraseActivities,
  eraseContacts,
  eraseContent,
  eraseDelivery,
  eraseEntries,
  eraseEvents,
  eraseInbound,
  eraseMessages,
  eraseOwned,
  eraseRejection,
  KNOWN_BY,
  mentionOf,
  mentionsAfter,
  MENTIONS,
  messagesToErase,
  OWNED,
  ownedToErase,
  ownersOf,
  queuedOf,
  rewriteAnswer,
  rewriteEvent,
  type Mention,
  type MentionTable,
  type Subject,
  wholeWord,
} from './erasure-store.js'

export interface ErasureParts {
  readonly database: Database
  readonly clock: Clock
  readonly dataDir: string
}

/** How many rows of each kind were deleted or had the person taken out. */
export type ErasureCounts = Readonly<Record<string, number>>

/** In place of the address, where something has to stay. */
const PLACEHOLDER = 'erased@erased.invalid'
const ROWS_AT_ONCE = 100
const ADDRESSES_AT_ONCE = 2_000

/**
 * @param email as `normalizedAddress` writes it
 * @param workspaceId with its sandbox; undefined: all workspaces
 */
export async function erasePerson(
  parts: ErasureParts,
  email: string,
  actor: Actor,
  workspaceId?: string,
): Promise<ErasureCounts> {
  const { database, clock, dataDir } = parts
  registerErased(dataDir, workspaceId, email, clock.now())
  const counts = await eraseEverywhere(parts, email, workspaceId)
  if (workspaceId !== undefined)
    await database.write(tx =>
      recordActivity(tx, {
        ...{ workspaceId, actor, action: 'contact.erased', subject: `sha256:${hashOf(email).slice(0, 16)}` },
        createdAt: clock.now(),
      }),
    )
  return counts
}

/** After a restore: erases everyone in the register whom the backup still contains. @returns how many people */
export async function eraseAgain(parts: ErasureParts): Promise<number> {
  const erased = readErased(parts.dataDir)
  if (erased.length === 0) return 0
  const hashes = new Map<string, (string | undefined)[]>()
  for (const { hash, workspaceId } of erased) hashes.set(hash, [...(hashes.get(hash) ?? []), workspaceId])
  const found = new Set<string>()
  for (const known of KNOWN_BY)
    for (let after = ''; ;) {
      const page = await addressesAfter(parts.database.reader, known, after, ADDRESSES_AT_ONCE)
      for (const address of page) if (hashes.has(hashOf(address))) found.add(address)
      after = page.at(-1) ?? ''
      if (page.length < ADDRESSES_AT_ONCE) break
      await nextTurn()
    }
  for (const email of found)
    for (const workspaceId of hashes.get(hashOf(email)) ?? [])
      await eraseEverywhere(parts, email, workspaceId)
  return found.size
}

async function eraseEverywhere(
  parts: ErasureParts,
  email: string,
  workspaceId: string | undefined,
): Promise<ErasureCounts> {
  const { database } = parts
  const workspaceIds = await ownersOf(database.reader, workspaceId)
  const contacts = await contactsToErase(database.slowReader, workspaceIds, email)
  const subject: Subject = { workspaceIds, email, contactIds: contacts.map(({ id }) => id) }
  const counts: Record<string, number> = { contacts: contacts.length }
  await database.write(async tx => {
    counts['suppressions_hashed'] = await eraseSuppressions(tx.db, workspaceIds, email)
    await eraseEntries(tx.db, subject)
    // Looked at again: a request beside this one may have erased them.
    const left = await contactsToErase(tx.db, workspaceIds, email)
    await eraseContacts(tx.db, left)
  })
  const messageIds = new Set<string>()
  Object.assign(counts, await eraseMail(parts, subject, messageIds))
  for (const owned of OWNED) {
    counts[owned.name] = 0
    for (
      let keys;
      (keys = await ownedToErase(database.slowReader, owned, subject, ROWS_AT_ONCE)).length > 0;
    ) {
      const some = keys
      await database.write(tx => eraseOwned(tx.db, owned, some), { isLong: true })
      counts[owned.name] = (counts[owned.name] ?? 0) + some.length
    }
  }
  Object.assign(counts, await eraseMentions(parts, subject, messageIds, workspaceId === undefined))
  return counts
}

async function eraseMail(
  { database, clock }: ErasureParts,
  subject: Subject,
  erased: Set<string>,
): Promise<ErasureCounts> {
  const counts = { messages: 0, message_contents: 0, captured_mails: 0 }
  for (let page; (page = await messagesToErase(database.reader, subject, ROWS_AT_ONCE)).length > 0;) {
    const messages = page
    const ids = messages.map(({ id }) => id)
    const captured = await capturedOf(database.slowReader, ids)
    await database.write(
      async tx => {
        const queued = await queuedOf(tx.db, ids)
        const at = clock.now()
        await recordTransitions(
          tx,
          queued.map(messageId => ({ kind: 'failed', messageId, at, facts: { reason: 'erased' } })),
        )
        await eraseMessages(tx.db, messages, captured)
      },
      { isLong: true },
    )
    for (const id of ids) erased.add(id)
    counts.messages += ids.length
    counts.captured_mails += captured.length
    for (const contentId of new Set(messages.map(one => one.content_id))) {
      let result: Awaited<ReturnType<typeof eraseContent>> = 'more'
      while (result === 'more')
        result = await database.write(tx => eraseContent(tx.db, contentId), { isLong: true })
      if (result === 'gone') counts.message_contents += 1
    }
  }
  return counts
}

async function eraseMentions(
  { database }: ErasureParts,
  subject: Subject,
  messageIds: ReadonlySet<string>,
  isEverywhere: boolean,
): Promise<ErasureCounts> {
  const counts: Record<string, number> = {}
  const words = [subject.email, ...subject.contactIds]
  const isNamed = mentionOf(words)
  const walk = async (
    table: MentionTable,
    isMeant: (mention: Mention) => boolean,
    erase: (db: Parameters<typeof eraseEvents>[0], mention: Mention) => Promise<void>,
  ) => {
    counts[table.name] = 0
    for (let after: string | number | undefined; ;) {
      const page = await mentionsAfter(
        database.slowReader,
        table,
        subject.workspaceIds,
        words,
        after,
        ROWS_AT_ONCE,
      )
      const meant = page.filter(mention => isNamed(mention.text) && isMeant(mention))
      if (meant.length > 0)
        await database.write(
          async tx => {
            for (const mention of meant) await erase(tx.db, mention)
          },
          { isLong: true },
        )
      counts[table.name] = (counts[table.name] ?? 0) + meant.length
      after = page.at(-1)?.key
      if (page.length < ROWS_AT_ONCE) return
    }
  }
  const all = () => true
  await walk(MENTIONS.events, all, (db, { key, text }) => {
    const rewritten = withoutPerson(text, subject)
    return rewritten === undefined ? eraseEvents(db, [Number(key)]) : rewriteEvent(db, Number(key), rewritten)
  })
  await walk(MENTIONS.deliveries, all, (db, { key, part }) => eraseDelivery(db, String(key), Number(part)))
  await walk(MENTIONS.activity, all, (db, { key }) => eraseActivities(db, [Number(key)]))
  await walk(MENTIONS.rejections, all, (db, { key, part }) => eraseRejection(db, Number(key), Number(part)))
  await walk(MENTIONS.answers, all, (db, { key, text }) =>
    rewriteAnswer(db, String(key), replaced(text, subject.email)),
  )
  // Mail that came back belongs to no workspace: it is the person's where it is about one of the erased messages.
  const isAbout = ({ text }: Mention) =>
    isEverywhere ||
    (text.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []).some(id => messageIds.has(id))
  await walk(MENTIONS.inbound, isAbout, (db, { key, part }) => eraseInbound(db, Number(key), String(part)))
  return counts
}

function replaced(text: string, email: string): string {
  return text.replace(new RegExp(wholeWord(email), 'giu'), PLACEHOLDER)
}

/** What an event about mail tells beside the address. */
const PERSONAL = ['ip', 'userAgent', 'diagnosticCode', 'contactId', 'url']

/** The payload of an event about mail, without the person; undefined for other events, which are deleted. */
function withoutPerson(text: string, { email }: Subject): string | undefined {
  const payload = JSON.parse(text) as Record<string, unknown>
  if (typeof payload['to'] !== 'string') return undefined
  const kept = Object.fromEntries(Object.entries(payload).filter(([name]) => !PERSONAL.includes(name)))
  return replaced(JSON.stringify({ ...kept, to: PLACEHOLDER }), email)
}
