/**
 * The media library of a workspace: uploading, changing and deleting images.
 *
 * An upload is answered once its image is committed. The same file uploaded again is the same image. Deleted images are no longer served
 * and can be restored for some time; when the library is full they make room for new ones.
 * Fails: AppError validation_error for a file that cannot be used, limit_reached, not_found, conflict, unavailable.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { formatSize } from '../../core/units.js'
import type { Database, Queries, Tx } from '../../db/database.js'
import type { Services } from '../../db/services.js'
import { recordActivity, type WorkspaceActor } from '../../events/activity-store.js'
import { settingsChanges } from '../../events/settings-changes.js'
import type { MemoryBudget } from '../../http/memory-budget.js'
import { etagOf, type Precondition } from '../../http/preconditions.js'
import { findTemplatesWith } from '../templates/template-store.js'
import {
  findImage,
  findLongestDeleted,
  insertImage,
  mediaUsage,
  octetsOf,
  removeImages,
  updateImage,
  type MediaImage,
} from './media-store.js'
import type { ImageThread } from './resizing/image-thread.js'
import type { PreparedImage } from './resizing/prepare-image.js'
import { pathOf } from './served-images.js'

export type MediaParts = Pick<Services, 'database' | 'clock' | 'newId' | 'publicUrl'>

export interface MediaLimits {
  /** Octets of a file. */
  readonly fileSizeBytes: number
  /** Width times height. */
  readonly pixels: number
  /** Octets of all files of a workspace. */
  readonly workspaceSizeBytes: number
}

/** How long deleted images can be restored. */
export const RESTORABLE_MS = 30 * 86_400_000
/** Per workspace, deleted ones included. */
export const MAX_IMAGES = 20_000
const MAX_NAME = 200

export interface Uploading extends MediaParts {
  readonly images: Pick<ImageThread, 'prepare'>
  /** For files that are being received. */
  readonly memory: MemoryBudget
  readonly limits: MediaLimits
}

export interface Texts {
  readonly fileName: string | undefined
  readonly altText: string | null | undefined
}

/**
 * @param texts called when the file is complete
 * @returns the image, which is on disk, and whether it is new
 */
export async function uploadImage(
  parts: Uploading,
  acting: WorkspaceActor,
  pieces: AsyncIterable<Buffer>,
  texts: () => Texts,
): Promise<{ readonly image: MediaImage; readonly isNew: boolean }> {
  const { database, clock, newId, images, memory, limits } = parts
  database.storage.requireRoom()
  const hold = memory.hold({ owner: acting.workspaceId })
  try {
    const octets = await collect(pieces, length => hold.reach(length))
    const { fileName, altText = null } = texts()
    const prepared = await images.prepare(octets, limits.pixels)
    const name = fileName ?? `image.${prepared.kind}`
    return await database.write(async tx => {
      const { workspaceId } = acting
      const now = clock.now()
      const known = await findImage(tx.db, workspaceId, { hash: prepared.original.hash })
      if (known) return { image: await bringBack(tx, acting, known, now), isNew: false }
      await makeRoom(tx, workspaceId, prepared, limits)
      const image = await insertImage(
        tx.db,
        { id: newId(), workspaceId, fileName: name, altText, createdAt: now },
        prepared,
      )
      await record(tx, acting, 'image.uploaded', image, now)
      return { image, isNew: true }
    })
  } finally {
    hold.release()
  }
}

/** @param onLength called with the octets received so far */
async function collect(
  pieces: AsyncIterable<Buffer>,
  onLength: (octets: number) => void,
): Promise<Uint8Array> {
  const all: Buffer[] = []
  let length = 0
  for await (const piece of pieces) {
    length += piece.length
    onLength(length)
    all.push(piece)
  }
  // Not part of a pool, so that it can be transferred to the thread.
  const whole = new Uint8Array(length)
  let at = 0
  for (const piece of all.splice(0)) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/** An uploaded file that is known: its image is restored if it was deleted. */
async function bringBack(
  tx: Tx,
  acting: WorkspaceActor,
  known: MediaImage,
  now: number,
): Promise<MediaImage> {
  if (known.deletedAt === null) return known
  const restored = { ...known, deletedAt: null, updatedAt: now }
  await updateImage(tx.db, restored)
  await record(tx, acting, 'image.restored', restored, now)
  return restored
}

/** Removes deleted images if the new one needs their space. @throws AppError limit_reached */
async function makeRoom(
  tx: Tx,
  workspaceId: string,
  prepared: PreparedImage,
  { workspaceSizeBytes }: MediaLimits,
): Promise<void> {
  const needed = octetsOf(prepared)
  const used = await mediaUsage(tx.db, workspaceId, 'all')
  let { images, octets } = used
  while (images >= MAX_IMAGES || octets + needed > workspaceSizeBytes) {
    const deleted = await findLongestDeleted(tx.db, workspaceId)
    if (!deleted) {
      const most =
        images >= MAX_IMAGES
          ? `${MAX_IMAGES.toLocaleString('en')} images`
          : `${formatSize(workspaceSizeBytes)} of images (media.workspace_size)`
      throw new AppError('limit_reached', `a workspace has at most ${most}; delete images you no longer use`)
    }
    await removeImages(tx.db, [deleted.seq])
    images -= 1
    octets -= deleted.storedOctets
  }
}

/** @param texts absent fields stay as they are */
export function changeImage(
  { database, clock }: MediaParts,
  acting: WorkspaceActor,
  id: string,
  texts: Texts,
  precondition: Precondition | undefined,
): Promise<MediaImage> {
  return database.write(async tx => {
    const before = await getImage(tx.db, acting.workspaceId, id)
    precondition?.check(imageEtag(before))
    const { fileName = before.fileName, altText = before.altText } = texts
    if (fileName === before.fileName && altText === before.altText) return before
    const after = { ...before, fileName, altText, updatedAt: clock.now() }
    await updateImage(tx.db, after)
    const shown = ({ fileName: file_name, altText: alt_text }: MediaImage) => ({ file_name, alt_text })
    await recordActivity(tx, acting, after.updatedAt, {
      action: 'image.changed',
      subject: after.fileName,
      details: { id: after.id },
      changes: settingsChanges(shown(before), shown(after)),
    })
    return after
  })
}

/** Templates named in an error. */
const MAX_NAMED = 5

/** @param isForced also if templates use it */
export async function deleteImage(
  { database, clock }: MediaParts,
  acting: WorkspaceActor,
  id: string,
  isForced: boolean,
  precondition: Precondition | undefined,
): Promise<void> {
  const { workspaceId } = acting
  if (!isForced) await refuseIfUsed(database, await getImage(database.reader, workspaceId, id))
  await database.write(async tx => {
    const image = await getImage(tx.db, workspaceId, id)
    precondition?.check(imageEtag(image))
    const now = clock.now()
    await updateImage(tx.db, { ...image, deletedAt: now })
    await record(tx, acting, 'image.deleted', image, now)
  })
}

/** Before the transaction, since it reads all templates. @throws AppError conflict */
async function refuseIfUsed({ slowReader }: Database, image: MediaImage): Promise<void> {
  const paths = [image, ...image.variants].map(({ hash }) => pathOf(hash))
  const templates = await findTemplatesWith(slowReader, image.workspaceId, paths, MAX_NAMED + 1)
  if (templates.length === 0) return
  const named = templates
    .slice(0, MAX_NAMED)
    .map(({ name, id }) => `template ${JSON.stringify(name)} (${id})`)
  const more = templates.length > MAX_NAMED ? ' and others' : ''
  throw new AppError(
    'conflict',
    `the image ${JSON.stringify(image.fileName)} is used by ${named.join(', ')}${more}; ` +
      'change what uses it first, or delete it anyway with force=true',
  )
}

export function restoreImage(
  { database, clock }: MediaParts,
  acting: WorkspaceActor,
  id: string,
): Promise<MediaImage> {
  return database.write(async tx => {
    const now = clock.now()
    const image = isUuid(id)
      ? await findImage(tx.db, acting.workspaceId, { id: id.toLowerCase() })
      : undefined
    if (!image || image.deletedAt === null || image.deletedAt < now - RESTORABLE_MS)
      throw new AppError('not_found', 'no such image was deleted in the last 30 days')
    return bringBack(tx, acting, image, now)
  })
}

/** @throws AppError not_found */
export async function getImage(db: Queries, workspaceId: string, id: string): Promise<MediaImage> {
  const image = isUuid(id) ? await findImage(db, workspaceId, { id: id.toLowerCase() }) : undefined
  if (!image || image.deletedAt !== null) throw new AppError('not_found', 'no such image')
  return image
}

export function imageEtag({ id, fileName, altText, updatedAt }: MediaImage): string {
  return etagOf(id, fileName, altText, updatedAt)
}

async function record(
  tx: Tx,
  acting: WorkspaceActor,
  action: 'image.uploaded' | 'image.deleted' | 'image.restored',
  { id, fileName, octets }: MediaImage,
  createdAt: number,
): Promise<void> {
  const details = { id, size: octets }
  await recordActivity(tx, acting, createdAt, { action, subject: fileName, details })
}

/** Strips folders and control characters. @returns undefined if nothing is left */
export function readFileName(text: string | undefined): string | undefined {
  const base = text
    ?.replace(/\p{Cc}/gu, '')
    .split(/[\\/]/)
    .at(-1)
    ?.trim()
  const name = Array.from(base ?? '')
    .slice(0, MAX_NAME)
    .join('')
  return name === '' ? undefined : name
}
