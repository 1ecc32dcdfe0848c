/**
 * SQL of the media library: images, their files in several widths, and the files' octets in parts.
 *
 * Octets are rows, not files, so that they commit with their image, every node has them, and backups, copies and erasure need nothing
 * further. An image that was deleted keeps its files until it can no longer be restored.
 */
import type { Generated, Selectable } from 'kysely'
import { AppError } from '../../core/errors.js'
import { fold, searchWords } from '../../core/fold.js'
import type { Queries } from '../../db/database.js'
import { foldedHasWords } from '../../db/folded-words.js'
import { newestFirst } from '../../db/listing.js'
import { snapshot } from '../../db/snapshot.js'
import { flag, type Flag } from '../../db/tables.js'
import type { Listing, Page } from '../../http/pagination.js'
import type { ImageKind } from './reading/image.js'
import type { PreparedImage } from './resizing/prepare-image.js'

interface MediaRow {
  seq: Generated<number>
  id: string
  workspace_id: string
  file_name: string
  alt_text: string | null
  name_folded: string
  kind: ImageKind
  is_animated: Flag
  width: number
  height: number
  octets: number
  hash: string
  stored_octets: number
  created_at: number
  updated_at: number
  deleted_at: number | null
}

interface MediaFileRow {
  media: number
  width: number
  height: number
  octets: number
  hash: string
}

interface MediaPartRow {
  media: number
  width: number
  part: number
  octets: Uint8Array
}

declare module '../../db/tables.js' {
  interface Tables {
    media: MediaRow
    media_files: MediaFileRow
    media_parts: MediaPartRow
  }
}

export interface StoredFile {
  /** Pixels. */
  readonly width: number
  readonly height: number
  readonly octets: number
  /** SHA-256, hexadecimal. */
  readonly hash: string
}

export interface MediaImage extends StoredFile {
  readonly seq: number
  readonly id: string
  readonly workspaceId: string
  readonly fileName: string
  readonly altText: string | null
  readonly kind: ImageKind
  readonly isAnimated: boolean
  /** Octets of all its files. */
  readonly storedOctets: number
  /** Smaller files, in order of width. */
  readonly variants: readonly StoredFile[]
  readonly createdAt: number
  readonly updatedAt: number
  readonly deletedAt: number | null
}

export type NewImage = Pick<MediaImage, 'id' | 'workspaceId' | 'fileName' | 'altText' | 'createdAt'>

/** Octets of a row, so that none is large. */
const PART_OCTETS = 256 * 1_024

export async function insertImage(
  db: Queries,
  image: NewImage,
  prepared: PreparedImage,
): Promise<MediaImage> {
  const { original, variants, kind, isAnimated } = prepared
  const files = [original, ...variants]
  const { width, height, hash } = original
  const row = await db
    .insertInto('media')
    .values({
      id: image.id,
      workspace_id: image.workspaceId,
      file_name: image.fileName,
      alt_text: image.altText,
      name_folded: folded(image),
      kind,
      is_animated: flag(isAnimated),
      width,
      height,
      octets: original.octets.length,
      hash,
      stored_octets: octetsOf(prepared),
      created_at: image.createdAt,
      updated_at: image.createdAt,
      deleted_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  const fileRows = files.map(file => ({
    media: row.seq,
    width: file.width,
    height: file.height,
    octets: file.octets.length,
    hash: file.hash,
  }))
  await db.insertInto('media_files').values(fileRows).execute()
  for (const file of files)
    for (let part = 0; part * PART_OCTETS < file.octets.length; part++) {
      const octets = file.octets.subarray(part * PART_OCTETS, (part + 1) * PART_OCTETS)
      await db.insertInto('media_parts').values({ media: row.seq, width: file.width, part, octets }).execute()
    }
  return fromRow(row, fileRows)
}

/** Octets of all files. */
export function octetsOf({ original, variants }: PreparedImage): number {
  return [original, ...variants].reduce((sum, { octets }) => sum + octets.length, 0)
}

function folded({ fileName, altText }: Pick<MediaImage, 'fileName' | 'altText'>): string {
  return fold(`${fileName} ${altText ?? ''}`)
}

export async function updateImage(db: Queries, image: MediaImage): Promise<void> {
  await db
    .updateTable('media')
    .set({
      file_name: image.fileName,
      alt_text: image.altText,
      name_folded: folded(image),
      updated_at: image.updatedAt,
      deleted_at: image.deletedAt,
    })
    .where('seq', '=', image.seq)
    .execute()
}

/** Deleted ones too. @returns undefined for an unknown one, or another workspace's */
export async function findImage(
  db: Queries,
  workspaceId: string,
  by: { readonly id: string } | { readonly hash: string },
): Promise<MediaImage | undefined> {
  const [column, value] = 'id' in by ? (['id', by.id] as const) : (['hash', by.hash] as const)
  return snapshot(db, async db => {
    const row = await db
      .selectFrom('media')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where(column, '=', value)
      .executeTakeFirst()
    return row && fromRow(row, await filesOf(db, [row.seq]))
  })
}

/** Newest first; every word of the search must occur in the file name or the alt text. */
export async function listImages(
  db: Queries,
  workspaceId: string,
  search: string | undefined,
  page: Page,
): Promise<Listing<MediaImage>> {
  return snapshot(db, async db => {
    const live = db
      .selectFrom('media')
      .where('workspace_id', '=', workspaceId)
      .where('deleted_at', 'is', null)
      .where(foldedHasWords(searchWords(search ?? '')))
    const found = await newestFirst(live, page, row => row)
    const seqs = found.items.map(({ seq }) => seq)
    const files = seqs.length === 0 ? [] : await filesOf(db, seqs)
    return { ...found, items: found.items.map(row => fromRow(row, files)) }
  })
}

function filesOf(db: Queries, seqs: readonly number[]): Promise<MediaFileRow[]> {
  return db.selectFrom('media_files').selectAll().where('media', 'in', seqs).orderBy('width').execute()
}

export interface MediaUsage {
  readonly images: number
  /** Octets of all files. */
  readonly octets: number
}

/** @param which `all`: deleted images too, while they can be restored */
export async function mediaUsage(
  db: Queries,
  workspaceId: string,
  which: 'live' | 'all',
): Promise<MediaUsage> {
  const of = db.selectFrom('media').where('workspace_id', '=', workspaceId)
  const { images, octets } = await (which === 'all' ? of : of.where('deleted_at', 'is', null))
    .select(e => [
      e.fn.countAll<number>().as('images'),
      e.fn.sum<number | string | null>('stored_octets').as('octets'),
    ])
    .executeTakeFirstOrThrow()
  return { images, octets: Number(octets ?? 0) }
}

export async function findLongestDeleted(
  db: Queries,
  workspaceId: string,
): Promise<Pick<MediaImage, 'seq' | 'storedOctets'> | undefined> {
  const row = await db
    .selectFrom('media')
    .select(['seq', 'stored_octets'])
    .where('workspace_id', '=', workspaceId)
    .where('deleted_at', 'is not', null)
    .orderBy('deleted_at')
    .limit(1)
    .executeTakeFirst()
  return row && { seq: row.seq, storedOctets: row.stored_octets }
}

export async function removeImages(db: Queries, seqs: readonly number[]): Promise<void> {
  if (seqs.length === 0) return
  await db.deleteFrom('media_parts').where('media', 'in', seqs).execute()
  await db.deleteFrom('media_files').where('media', 'in', seqs).execute()
  await db.deleteFrom('media').where('seq', 'in', seqs).execute()
}

/** Images per step: one may have tens of megabytes. */
const MAX_REMOVED = 4

/** Removes images deleted before a moment. @returns number removed */
export async function removeDeletedBefore(db: Queries, before: number, limit: number): Promise<number> {
  const rows = await db
    .selectFrom('media')
    .select('seq')
    .where('deleted_at', '<', before)
    .orderBy('deleted_at')
    .limit(Math.min(limit, MAX_REMOVED))
    .execute()
  await removeImages(
    db,
    rows.map(({ seq }) => seq),
  )
  return rows.length
}

/** A file to serve. */
export interface PublicFile {
  readonly seq: number
  readonly width: number
  readonly octets: number
  readonly kind: ImageKind
}

/** @param hash of its octets @returns undefined if no image has it that is not deleted, nor its workspace removed */
export async function findPublicFile(db: Queries, hash: string): Promise<PublicFile | undefined> {
  const row = await db
    .selectFrom('media_files')
    .innerJoin('media', 'media.seq', 'media_files.media')
    .select(['media.seq', 'media.kind', 'media_files.width', 'media_files.octets'])
    .where('media_files.hash', '=', hash)
    .where('media.deleted_at', 'is', null)
    .where(media =>
      media.exists(
        media
          .selectFrom('workspaces')
          .select('workspaces.id')
          .where('workspaces.id', '=', query =>
            query.fn.coalesce(
              query
                .selectFrom('sandboxes')
                .select('sandboxes.workspace_id')
                .whereRef('sandboxes.id', '=', 'media.workspace_id'),
              query.ref('media.workspace_id'),
            ),
          )
          .where('workspaces.deleted_at', 'is', null),
      ),
    )
    .limit(1)
    .executeTakeFirst()
  return row
}

export function countParts({ octets }: PublicFile): number {
  return Math.ceil(octets / PART_OCTETS)
}

/** @param part from 0 @throws AppError not_found if the image was removed meanwhile */
export async function readFilePart(
  db: Queries,
  { seq, width }: PublicFile,
  part: number,
): Promise<Uint8Array> {
  const row = await db
    .selectFrom('media_parts')
    .select('octets')
    .where('media', '=', seq)
    .where('width', '=', width)
    .where('part', '=', part)
    .executeTakeFirst()
  if (!row) throw new AppError('not_found', 'no such image')
  return row.octets
}

function fromRow(row: Selectable<MediaRow>, files: readonly MediaFileRow[]): MediaImage {
  return {
    seq: row.seq,
    id: row.id,
    workspaceId: row.workspace_id,
    fileName: row.file_name,
    altText: row.alt_text,
    kind: row.kind,
    isAnimated: row.is_animated === 1,
    width: row.width,
    height: row.height,
    octets: row.octets,
    hash: row.hash,
    storedOctets: row.stored_octets,
    variants: files
      .filter(({ media, width }) => media === row.seq && width !== row.width)
      .map(({ width, height, octets, hash }) => ({ width, height, octets, hash })),
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  }
}
