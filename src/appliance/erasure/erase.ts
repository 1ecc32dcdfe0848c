/**
 * Erases a person from one workspace or all of them: `POST /contacts/erase`, `postroad erase`, and `postroad restore` for those erased
 * before.
 *
 * Works in transactions of a few milliseconds, so that a person with 100,000 messages does not block the writer. Repeatable: whatever is
 * needed to find a person's rows is deleted after those rows, so after a crash the same request erases the rest. What survives: a
 * suppression, under the address's SHA-256; figures that name nobody; events about mail, with a placeholder for the address, since
 * consumers still count them; mail to others, without the address in its fields (`rewrite-store.ts`) but with its text, which retention
 * deletes. Imports under way drop the person's rows; their files are deleted when they end. Fails: as the database does.
 */
import { eraseFromImports } from '../../audience/transfer/import-store.js'
import { must } from '../../core/must.js'
import type { Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { eraseSuppressions } from '../../deliverability/suppressions/suppression-store.js'
import type { Actor } from '../../core/actor.js'
import { APPLIANCE } from '../../core/owner.js'
import { recordActivity } from '../../events/activity-store.js'
import { recordTransitions } from '../../messages/message-history.js'
import { nextTurn } from '../../world/time/clock.js'
import { eraseInboundMails, eraseMentions, rewriteOthers } from './erase-mentions.js'
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
import { importsOf, MENTIONS, rejectionsOf, textsAfter } from './mention-store.js'
import { addressesIn, withoutAddress } from './person-words.js'
import { Pieces, ROWS_AT_ONCE } from './pieces.js'
import { REWRITTEN, searched, withoutAddressee } from './rewrite-store.js'

export interface ErasureParts extends Pick<Services, 'database' | 'clock'> {
  readonly dataDir: string
}

/** How many rows of each kind were deleted or had the person taken out. */
export type ErasureCounts = Readonly<Record<string, number>>

const ADDRESSES_AT_ONCE = 20_000
/** Texts of a restored database read at once. */
const TEXTS_AT_ONCE = 1_000

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
    recordActivity(tx, { workspaceId: workspaceId ?? APPLIANCE, actor }, clock.now(), {
      action: 'contact.erased',
      subject: `sha256:${hashOf(email).slice(0, 16)}`,
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
      if (page.length < ADDRESSES_AT_ONCE) break
      after = must(page.at(-1), 'the last address')
      await nextTurn()
    }
  const imports = await importsOf(parts.database.reader, await ownersOf(parts.database.reader))
  const tables = [...Object.values(MENTIONS), ...REWRITTEN.map(searched), ...imports.map(rejectionsOf)]
  for (const table of tables)
    for (let after: string | number | undefined; ;) {
      const page = await textsAfter(parts.database.reader, table, after, TEXTS_AT_ONCE)
      for (const { text } of page)
        for (const address of addressesIn(text)) if (hashes.has(hashOf(address))) found.add(address)
      after = page.at(-1)?.key
      if (page.length < TEXTS_AT_ONCE) break
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
  const pieces = new Pieces(parts)
  await pieces.write(async tx => {
    counts['suppressions_hashed'] = await eraseSuppressions(tx.db, workspaceIds, email)
    await eraseFromImports(tx.db, workspaceIds, hashOf(email))
    // Rows below are found by contact id, so the contact is deleted last.
    await hideContacts(tx.db, await contactsToErase(tx.db, workspaceIds, email), clock.now())
  })
  const isEverywhere = workspaceId === undefined
  // Before the messages, which show whose mail a bounce is about.
  counts['inbound_mails'] = await eraseInboundMails(database, pieces, subject, isEverywhere)
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
  Object.assign(counts, await eraseMentions(database, pieces, subject))
  Object.assign(counts, await rewriteOthers(database, pieces, subject))
  await pieces.write(async tx => {
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
      await deleteParts(pieces, page)
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
async function deleteParts(pieces: Pieces, messages: readonly ErasedMessage[]): Promise<void> {
  const ids = messages.map(({ id }) => id)
  for (const contentId of new Set(messages.filter(one => one.hasParts).map(one => one.contentId)))
    while (await pieces.write(tx => eraseContentParts(tx.db, contentId, ids), { isLong: true }));
}

/** Removes the person from the recipients and merge data of contents that others received too, at once even if some are still to be sent. */
async function withoutRecipient(tx: Tx, contentId: string, { email }: Subject): Promise<void> {
  const named = await recipientsOf(tx.db, contentId)
  if (named === undefined) return
  const addressees = named.addressees === null ? null : withoutAddressee(named.addressees, email)
  const merging = named.merging === null ? null : withoutAddress(named.merging, email)
  if (addressees !== named.addressees || merging !== named.merging)
    await rewriteRecipients(tx.db, contentId, { addressees, merging })
}
