/**
 * Creates, changes and deletes saved blocks, each with an activity log entry.
 *
 * Their blocks are validated as those of a template are, so whatever is inserted can be sent. Nothing refers to a saved block: inserting one
 * copies it.
 * Fails: AppError validation_error with the field's path, limit_reached, not_found.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { formatSize } from '../../core/units.js'
import type { Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity, type WorkspaceActor } from '../../events/activity-store.js'
import { etagOf, type Precondition } from '../../http/preconditions.js'
import type { Structure } from '../blocks/read-structure.js'
import type { RenderQueue } from '../rendering/render-queue.js'
import { readContent, readGivenStructure, requireParsableHtml } from '../templates/read-content.js'
import {
  countSavedBlocks,
  findSavedBlock,
  insertSavedBlock,
  removeSavedBlock,
  updateSavedBlock,
  type SavedBlock,
} from './saved-block-store.js'

export interface SavedBlockParts extends Pick<Services, 'database' | 'clock' | 'newId'> {
  readonly renderQueue: RenderQueue
}

export interface SavedBlockInput {
  readonly name?: string | undefined
  readonly json_structure?: Readonly<Record<string, unknown>> | undefined
}

/** Per workspace. */
export const MAX_SAVED_BLOCKS = 500
/** As many as a column may hold. */
export const MAX_BLOCKS = 100
/** Of the structure as JSON, octets of UTF-8. */
const MAX_OCTETS = 256 * 1_024

const PATH = 'json_structure'

export async function createSavedBlock(
  parts: SavedBlockParts,
  acting: WorkspaceActor,
  given: SavedBlockInput,
): Promise<SavedBlock> {
  const { database, clock, newId } = parts
  const { workspaceId } = acting
  const now = clock.now()
  const content = await readSaved(parts, workspaceId, given, readBlocks(given))
  const block = { id: newId(), workspaceId, ...content, createdAt: now, updatedAt: now }
  await database.write(async tx => {
    if ((await countSavedBlocks(tx.db, workspaceId)) >= MAX_SAVED_BLOCKS)
      throw new AppError(
        'limit_reached',
        `a workspace has at most ${MAX_SAVED_BLOCKS} saved blocks; delete those you no longer use`,
      )
    await insertSavedBlock(tx.db, block)
    await log(tx, acting, 'saved_block.created', block, now)
  })
  return block
}

/** An empty body changes nothing. */
export async function changeSavedBlock(
  parts: SavedBlockParts,
  acting: WorkspaceActor,
  id: string,
  given: SavedBlockInput,
  precondition?: Precondition,
): Promise<SavedBlock> {
  const { database, clock } = parts
  const { workspaceId } = acting
  const read = readBlocks(given)
  const seen = await getSavedBlock(database.reader, workspaceId, id)
  precondition?.check(savedBlockEtag(seen))
  if (given.name === undefined && given.json_structure === undefined) return seen
  // Parsed before the transaction, which must not wait for it.
  const content = await readSaved(parts, workspaceId, given, read, seen)
  return database.write(async tx => {
    const before = await getSavedBlock(tx.db, workspaceId, id)
    precondition?.check(savedBlockEtag(before))
    const now = clock.now()
    const after = {
      ...before,
      ...(given.name === undefined ? {} : { name: content.name }),
      ...(given.json_structure === undefined ? {} : { structure: content.structure }),
      updatedAt: now,
    }
    await updateSavedBlock(tx.db, after)
    await log(tx, acting, 'saved_block.updated', after, now)
    return after
  })
}

export function deleteSavedBlock(
  { database, clock }: SavedBlockParts,
  acting: WorkspaceActor,
  id: string,
  precondition?: Precondition,
): Promise<void> {
  return database.write(async tx => {
    const block = await getSavedBlock(tx.db, acting.workspaceId, id)
    precondition?.check(savedBlockEtag(block))
    await removeSavedBlock(tx.db, block.id)
    await log(tx, acting, 'saved_block.deleted', block, clock.now())
  })
}

/** @throws AppError not_found */
export async function getSavedBlock(db: Queries, workspaceId: string, id: string): Promise<SavedBlock> {
  const block = isUuid(id) ? await findSavedBlock(db, workspaceId, id.toLowerCase()) : undefined
  if (!block) throw new AppError('not_found', 'no such saved block')
  return block
}

export function savedBlockEtag({ id, name, updatedAt }: SavedBlock): string {
  return etagOf(id, name, updatedAt)
}

function readBlocks(given: SavedBlockInput): Structure | undefined {
  if (given.json_structure?.['settings'] !== undefined)
    throw fault(
      `${PATH}.settings`,
      'cannot be given: saved blocks take the settings of the mail they are inserted into',
    )
  const read = readGivenStructure(given)
  if (read && (read.blocks.length === 0 || read.blocks.length > MAX_BLOCKS))
    throw fault(`${PATH}.blocks`, `must have from 1 to ${MAX_BLOCKS} blocks`)
  return read
}

/**
 * @param read result of `readBlocks` for `given`
 * @param before the current content; undefined for a new one. What is stored is not validated again.
 */
async function readSaved(
  { renderQueue }: SavedBlockParts,
  workspaceId: string,
  given: SavedBlockInput,
  read: Structure | undefined,
  before?: SavedBlock,
): Promise<Pick<SavedBlock, 'name' | 'structure'>> {
  const kept = before && { ...before, description: null, html: '' }
  const { name, html, structure } = readContent(given, read, kept)
  if (structure === null || Buffer.byteLength(structure) > MAX_OCTETS)
    throw fault(PATH, `must have at most ${formatSize(MAX_OCTETS)} as JSON`)
  if (read) await requireParsableHtml(renderQueue, workspaceId, html, given, read)
  return { name: name.trim(), structure }
}

function fault(path: string, problem: string): AppError {
  return new AppError('validation_error', `${path} ${problem}`, { path })
}

function log(
  tx: Tx,
  acting: WorkspaceActor,
  action: 'saved_block.created' | 'saved_block.updated' | 'saved_block.deleted',
  { id, name }: SavedBlock,
  createdAt: number,
): Promise<void> {
  return recordActivity(tx, acting, createdAt, { action, subject: name, details: { id } })
}
