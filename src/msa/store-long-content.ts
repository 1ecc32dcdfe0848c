/**
 * Stores large attachments and large batches' texts in short transactions before the mail is accepted, so that other writers are
 * not blocked for long. Leftovers of a crash are deleted at the next start.
 *
 * Called by the REST sends around the accepting transaction. On any error, what was stored is deleted.
 */
import type { Database, Tx } from '../db/database.js'
import { PART_OCTETS } from '../mail/message-spool.js'
import {
  discardStagedContents,
  insertStagedContents,
  listStagedContents,
  acceptStagedContents,
} from '../messages/staged-content-store.js'
import { deleteOrphanedParts, deleteParts, insertPart } from '../messages/content-store.js'
import type { Workspace } from '../accounts/workspace-store.js'
import type { Submission } from './mail-submission.js'
import { toContent } from './submit.js'

/** Text characters per staging transaction; one more content may exceed it. Smaller batches are not staged. */
const CHARACTERS_AT_ONCE = 1_048_576
/** Contents per staging transaction. */
const CONTENTS_AT_ONCE = 64

/**
 * Stages large content, then runs `accept`; deletes the staged content if that fails.
 *
 * @param accept submits the given submissions, which may be marked as stored; it must call `take` in its transaction, which turns
 *   staged contents into accepted ones
 */
export async function withLongStored<T>(
  database: Database,
  workspace: Workspace,
  submissions: readonly Submission[],
  now: number,
  accept: (submissions: readonly Submission[], take: (tx: Tx) => Promise<void>) => Promise<T>,
): Promise<T> {
  const attached = submissions.filter(one => (one.attached?.length ?? 0) > PART_OCTETS)
  const texts = submissions.reduce((sum, one) => sum + lengthOf(one), 0)
  const isLong = submissions.length > 1 && texts > CHARACTERS_AT_ONCE
  if (attached.length === 0 && !isLong) return accept(submissions, nothing)
  try {
    for (const { content, attached: octets } of attached) await storeLaterParts(database, content.id, octets)
    if (!isLong) return await accept(submissions, nothing)
    const stored = await storeContents(database, workspace, submissions, now)
    return await accept(stored, tx => acceptStagedContents(tx.db, idsOf(stored)))
  } catch (error) {
    await discard(database, attached, submissions).catch(() => {})
    throw error
  }
}

/** Deletes leftovers of a crash. @param before as `leftBehindBefore` says */
export async function clearLeftBehind(database: Database, before: string): Promise<void> {
  for (;;) {
    const ids = await listStagedContents(database.reader, before, CONTENTS_AT_ONCE)
    if (ids.length === 0) break
    await database.write(tx => discardStagedContents(tx.db, ids))
  }
  await database.write(tx => deleteOrphanedParts(tx.db, before))
}

async function storeContents(
  database: Database,
  workspace: Workspace,
  submissions: readonly Submission[],
  now: number,
): Promise<Submission[]> {
  let from = 0
  while (from < submissions.length) {
    let [to, characters] = [from, 0]
    for (
      ;
      to < submissions.length && to - from < CONTENTS_AT_ONCE && characters < CHARACTERS_AT_ONCE;
      to += 1
    )
      characters += lengthOf(submissions[to])
    const piece = submissions.slice(from, to)
    const contents = piece.map(({ content }) => toContent(content, workspace, now))
    await database.write(async tx => {
      await insertStagedContents(tx.db, contents)
      for (const { content, attached } of piece)
        if (attached && attached.length > 0)
          await insertPart(tx.db, content.id, 1, attached.subarray(0, PART_OCTETS))
    })
    from = to
  }
  return submissions.map(one => ({ ...one, isContentStored: true }))
}

function lengthOf(one: Submission | undefined): number {
  const { html = '', text = '' } = one?.content ?? {}
  return html.length + text.length
}

function idsOf(submissions: readonly Submission[]): string[] {
  return submissions.map(({ content }) => content.id)
}

const nothing = () => Promise.resolve()

async function storeLaterParts(database: Database, contentId: string, octets?: Buffer): Promise<void> {
  if (!octets) return
  for (let part = 2; (part - 1) * PART_OCTETS < octets.length; part += 1) {
    const piece = octets.subarray((part - 1) * PART_OCTETS, part * PART_OCTETS)
    await database.write(tx => insertPart(tx.db, contentId, part, piece))
  }
}

async function discard(
  database: Database,
  attached: readonly Submission[],
  submissions: readonly Submission[],
): Promise<void> {
  for (const { content } of attached) await database.write(tx => deleteParts(tx.db, content.id))
  const ids = idsOf(submissions)
  for (let from = 0; from < ids.length; from += CONTENTS_AT_ONCE)
    await database.write(tx => discardStagedContents(tx.db, ids.slice(from, from + CONTENTS_AT_ONCE)))
}
