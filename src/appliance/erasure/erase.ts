/**
 * Erases a person from one workspace or all of them: `POST /contacts/erase`, `postroad erase`, and `postroad restore` for those erased
 * before.
 *
 * Works in transactions of a few milliseconds, so that a person with 100,000 messages does not block the writer. Repeatable: whatever is
 * needed to find a person's rows is deleted after those rows, so after a crash the same request erases the rest. What survives: a
 * suppression, under the address's SHA-256; figures that name nobody; events about mail, with a placeholder for the address, since
 * consumers still count them; mail that others received as well, without the address in its recipients and merge data. Imports under way
 * drop the person's rows; their files are deleted when they end. Fails: as the database does.
 */
import { eraseFromImports } from '../../audience/transfer/import-store.js'
import type { Database, Tx } from '../../db/database.js'
import { PieceSize } from '../../db/piece-size.js'
import { eraseSuppressions } from '../../deliverability/suppressions/suppression-store.js'
import type { Actor } from '../../core/actor.js'
import { APPLIANCE } from '../../core/owner.js'
import { recordActivity } from '../../events/activity-store.js'
import { recordTransitions } from '../../messages/message-history.js'
import { nextTurn, pauseFor, type Clock } from '../../world/time/clock.js'
import { hashOf, readErased, registerErased } from './erased-register.js'
import {
  addressesAfter,
  capturedOf,
  contactsToErase,
  eraseContacts,
  eraseContent,
  eraseContentParts,
  eraseEntries,
  eraseMessages,
  eraseOwned,
  hideContacts,
  KNOWN_BY,
  messagesAmong,
  messagesToErase,
  OWNED,
  ownedToErase,
  ownersOf,
  queuedOf,
  recipientsOf,
  rewriteRecipients,
  type ErasedMessage,
  type Subject,
} from './erasure-store.js'
import {
  eraseActivity,
  eraseDeliveries,
  eraseEvent,
  eraseInbound,
  eraseRejection,
  importsOf,
  keyAtDistance,
  mentionsBetween,
  MENTIONS,
  rejectionsOf,
  rewriteAnswer,
  rewriteBatchErrors,
  rewriteEvent,
  mentionOf,
  wholeWord,
  type Mention,
  type MentionTable,
} from './mention-store.js'

export interface ErasureParts {
  readonly database: Database
  readonly clock: Clock
  readonly dataDir: string
}

/** How many rows of each kind were deleted or had the person taken out. */
export type ErasureCounts = Readonly<Record<string, number>>

/** Replaces the address where a row must stay. */
const PLACEHOLDER = 'erased@erased.invalid'
/** Rows read at once; how many a transaction changes is measured. */
const ROWS_AT_ONCE = 200
const MIN_ROWS = 5
const PIECE_MS = 5
/** Pause between transactions, so that other writers are not delayed. */
const REST_MS = 1
/** Rows that one statement searches for mentions; other readers share the reading threads. */
const ROWS_SEARCHED = 5_000
const ADDRESSES_AT_ONCE = 20_000

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
  await database.write(tx =>
    recordActivity(tx, {
      workspaceId: workspaceId ?? APPLIANCE,
      actor,
      action: 'contact.erased',
      subject: `sha256:${hashOf(email).slice(0, 16)}`,
      createdAt: clock.now(),
    }),
  )
  return counts
}

/** After a restore: erases everyone in the register that the backup contains. @returns number of people */
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
  // Imports in the backup may contain people that no table has yet.
  for (const { hash, workspaceId } of erased) {
    const workspaceIds = await ownersOf(parts.database.reader, workspaceId)
    await parts.database.write(tx => eraseFromImports(tx.db, workspaceIds, hash))
  }
  return found.size
}

async function eraseEverywhere(
  parts: ErasureParts,
  email: string,
  workspaceId: string | undefined,
): Promise<ErasureCounts> {
  const { database, clock } = parts
  const workspaceIds = await ownersOf(database.reader, workspaceId)
  const known = await contactsToErase(database.slowReader, workspaceIds, email)
  const subject: Subject = { workspaceIds, email, contactIds: known.map(({ id }) => id) }
  const counts: Record<string, number> = { contacts: known.length }
  await database.write(async tx => {
    counts['suppressions_hashed'] = await eraseSuppressions(tx.db, workspaceIds, email)
    await eraseFromImports(tx.db, workspaceIds, hashOf(email))
    // Rows below are found by contact id, so the contact is deleted last.
    await hideContacts(tx.db, await contactsToErase(tx.db, workspaceIds, email), clock.now())
  })
  const pieces = new Pieces(parts)
  const isEverywhere = workspaceId === undefined
  // Before the messages, which show whose mail a bounce is about.
  counts['inbound_mails'] = await eraseInboundMails(parts, pieces, subject, isEverywhere)
  Object.assign(counts, await eraseMail(parts, pieces, subject))
  for (const owned of OWNED) {
    counts[owned.name] = 0
    for (
      let keys;
      (keys = await ownedToErase(database.slowReader, owned, subject, ROWS_AT_ONCE)).length > 0;
    ) {
      await pieces.run(keys, (tx, some) => eraseOwned(tx.db, owned, some))
      counts[owned.name] = (counts[owned.name] ?? 0) + keys.length
    }
  }
  Object.assign(counts, await eraseMentions(parts, pieces, subject))
  await database.write(async tx => {
    await eraseEntries(tx.db, subject)
    const left = await contactsToErase(tx.db, workspaceIds, email)
    // A contact created since the request belongs to a person who came back.
    await eraseContacts(
      tx.db,
      left.filter(({ id }) => subject.contactIds.includes(id)),
    )
  })
  return counts
}

/** Splits work on rows into transactions of a few milliseconds. */
class Pieces {
  private readonly database: Database
  private readonly size: PieceSize

  constructor({ database, clock }: ErasureParts) {
    this.database = database
    this.size = new PieceSize(clock, MIN_ROWS, ROWS_AT_ONCE, PIECE_MS)
  }

  async run<Row>(
    rows: readonly Row[],
    work: (tx: Tx, some: readonly Row[]) => Promise<unknown>,
  ): Promise<void> {
    for (let done = 0; done < rows.length;) {
      const some = rows.slice(done, done + this.size.rows)
      await this.size.measured(some.length, measure =>
        this.database.write(tx => measure(() => work(tx, some)), { isLong: true }),
      )
      done += some.length
      await pauseFor(REST_MS)
    }
  }
}

async function eraseMail(parts: ErasureParts, pieces: Pieces, subject: Subject): Promise<ErasureCounts> {
  const { database } = parts
  const counts = { messages: 0, message_contents: 0, captured_mails: 0 }
  for (const workspaceId of subject.workspaceIds)
    for (let after = ''; ;) {
      const page = await messagesToErase(
        database.slowReader,
        { workspaceId, email: subject.email, after },
        ROWS_AT_ONCE,
      )
      await endDelivery(parts, pieces, page)
      await deleteParts(database, page)
      const captured = await capturedOf(
        database.slowReader,
        page.map(({ id }) => id),
      )
      await pieces.run(page, async (tx, some) => {
        const ids = new Set(some.map(({ id }) => id))
        await eraseMessages(
          tx.db,
          some,
          captured.filter(one => ids.has(one.messageId)).map(({ seq }) => seq),
        )
        for (const contentId of new Set(some.map(one => one.contentId)))
          if (await eraseContent(tx.db, contentId)) counts.message_contents += 1
          else await withoutRecipient(tx, contentId, subject)
      })
      counts.messages += page.length
      counts.captured_mails += captured.length
      after = page.at(-1)?.id ?? after
      if (page.length < ROWS_AT_ONCE) break
    }
  return counts
}

/** Cancels queued mail. Campaigns count the final event. */
async function endDelivery(
  { clock }: ErasureParts,
  pieces: Pieces,
  messages: readonly ErasedMessage[],
): Promise<void> {
  const queued = messages.filter(({ isQueued }) => isQueued)
  await pieces.run(queued, async (tx, some) => {
    const ids = await queuedOf(
      tx.db,
      some.map(({ id }) => id),
    )
    const at = clock.now()
    await recordTransitions(
      tx,
      ids.map(messageId => ({ kind: 'failed', messageId, at, facts: { reason: 'erased' } })),
    )
  })
}

/** Deletes large contents that nobody else received, in steps; before their messages, by which a repeated run finds them. */
async function deleteParts(database: Database, messages: readonly ErasedMessage[]): Promise<void> {
  const ids = messages.map(({ id }) => id)
  for (const contentId of new Set(messages.filter(one => one.hasParts).map(one => one.contentId)))
    while (await database.write(tx => eraseContentParts(tx.db, contentId, ids), { isLong: true }));
}

/** Removes the person from the recipients and merge data of contents that others received too. */
async function withoutRecipient(tx: Tx, contentId: string, { email }: Subject): Promise<void> {
  const named = await recipientsOf(tx.db, contentId)
  if (named === undefined) return
  const addressees = named.addressees === null ? null : withoutAddressee(named.addressees, email)
  const merging = named.merging === null ? null : replaced(named.merging, email)
  if (addressees !== named.addressees || merging !== named.merging)
    await rewriteRecipients(tx.db, contentId, { addressees, merging })
}

type Addressee = string | { readonly address: string }

/** @param json as `content-store.ts` writes it */
function withoutAddressee(json: string, email: string): string {
  const { to, cc, ...rest } = JSON.parse(json) as { to: Addressee[]; cc: Addressee[] }
  const isOther = (one: Addressee) =>
    (typeof one === 'string' ? one : one.address).toLowerCase() !== email.toLowerCase()
  const left = to.filter(isOther)
  return JSON.stringify({ ...rest, to: left.length > 0 ? left : [PLACEHOLDER], cc: cc.filter(isOther) })
}

/** Inbound mail belongs to no workspace; it is the person's if it is about one of their messages. */
async function eraseInboundMails(
  { database }: ErasureParts,
  pieces: Pieces,
  subject: Subject,
  isEverywhere: boolean,
): Promise<number> {
  let count = 0
  for await (const page of mentions(database, MENTIONS.inbound, subject)) {
    const idsOf = ({ text }: Mention) =>
      text.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g)?.slice(0, ROWS_AT_ONCE) ?? []
    const meant: Mention[] = []
    for (const mention of page)
      if (isEverywhere || (await messagesAmong(database.slowReader, subject, idsOf(mention))))
        meant.push(mention)
    await pieces.run(meant, async (tx, some) => {
      for (const { key, part } of some) await eraseInbound(tx.db, Number(key), String(part))
    })
    count += meant.length
  }
  return count
}

async function eraseMentions(
  { database }: ErasureParts,
  pieces: Pieces,
  subject: Subject,
): Promise<ErasureCounts> {
  const counts: Record<string, number> = {}
  const walk = async (table: MentionTable, erase: (db: Tx['db'], mention: Mention) => Promise<void>) => {
    counts[table.name] ??= 0
    for await (const page of mentions(database, table, subject)) {
      await pieces.run(page, async (tx, some) => {
        for (const mention of some) await erase(tx.db, mention)
      })
      counts[table.name] = (counts[table.name] ?? 0) + page.length
    }
  }
  await walk(MENTIONS.events, (db, { key, text }) => {
    const rewritten = withoutPerson(text, subject)
    return rewritten === undefined ? eraseEvent(db, Number(key)) : rewriteEvent(db, Number(key), rewritten)
  })
  await walk(MENTIONS.deliveries, (db, { key, part }) => eraseDeliveries(db, String(key), Number(part)))
  await walk(MENTIONS.activity, (db, { key }) => eraseActivity(db, Number(key)))
  counts['import_rejections'] = 0
  for (const contactImport of await importsOf(database.slowReader, subject.workspaceIds))
    await walk(rejectionsOf(contactImport), (db, { key }) => eraseRejection(db, contactImport, Number(key)))
  await walk(MENTIONS.batches, (db, { key, text }) =>
    rewriteBatchErrors(db, String(key), replaced(text, subject.email)),
  )
  await walk(MENTIONS.answers, (db, { key, text }) =>
    rewriteAnswer(db, String(key), replaced(text, subject.email)),
  )
  return counts
}

/** Processes rows that mention the person; each statement searches a bounded range of the table. */
async function* mentions(
  database: Database,
  table: MentionTable,
  subject: Subject,
): AsyncGenerator<Mention[]> {
  const words = [subject.email, ...subject.contactIds]
  const isNamed = mentionOf(words)
  for (let after: string | number | undefined; ;) {
    const end = await keyAtDistance(database.slowReader, table, after, ROWS_SEARCHED)
    for (let from = after; ;) {
      const page = await mentionsBetween(
        database.slowReader,
        table,
        { workspaceIds: subject.workspaceIds, words },
        { after: from, end },
        ROWS_AT_ONCE,
      )
      const named = page.filter(({ text }) => isNamed(text))
      if (named.length > 0) yield named
      if (page.length < ROWS_AT_ONCE) break
      from = page.at(-1)?.key
    }
    if (end === undefined) return
    after = end
  }
}

function replaced(text: string, email: string): string {
  return text.replace(new RegExp(wholeWord(email), 'giu'), PLACEHOLDER)
}

/** Fields of a mail event besides the address. */
const PERSONAL = ['ip', 'userAgent', 'diagnosticCode', 'contactId', 'url']

/** The payload of a mail event without the person; undefined for other events, which are deleted. */
function withoutPerson(text: string, { email }: Subject): string | undefined {
  const payload = JSON.parse(text) as Record<string, unknown>
  if (typeof payload['to'] !== 'string') return undefined
  const kept = Object.fromEntries(Object.entries(payload).filter(([name]) => !PERSONAL.includes(name)))
  return replaced(JSON.stringify({ ...kept, to: PLACEHOLDER }), email)
}
