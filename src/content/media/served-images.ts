/**
 * The public files of the media library: `/m/<hash>.<extension>`.
 *
 * A file's name is the hash of its octets, so it never changes and may be cached forever. Whether its image still exists is looked up for
 * each request, in every process; parts of files are kept in memory, since the recipients of a mailing open it within minutes. A client that
 * reads slowly holds one part, whatever the size of the file, so downloads never exhaust what others need.
 * Fails: AppError not_found.
 */
import { AppError } from '../../core/errors.js'
import type { Database } from '../../db/database.js'
import type { PublicAnswer, PublicRoute } from '../../http/public/public-route.js'
import { countParts, findPublicFile, readFilePart, type PublicFile, type StoredFile } from './media-store.js'
import { EXTENSIONS, MEDIA_TYPES, type ImageKind } from './reading/image.js'

const PATH = '/m/'
const FILE_NAME = /^([0-9a-f]{64})\.(png|jpg|gif|webp)$/
const YEAR_SECONDS = 31_536_000
/** Octets kept in memory. */
const KEPT_OCTETS = 64 * 1_024 * 1_024

/** @param publicUrl without a trailing slash */
export function fileUrl(publicUrl: string, kind: ImageKind, { hash }: Pick<StoredFile, 'hash'>): string {
  return `${publicUrl}${pathOf(hash)}.${EXTENSIONS[kind]}`
}

/** Path in the URLs of a file, whichever host they name. */
export function pathOf(hash: string): string {
  return `${PATH}${hash}`
}

export function mediaPages({ database }: { readonly database: Database }): PublicRoute[] {
  const memory = new PartMemory((file, part) => readFilePart(database.reader, file, part))
  return [
    {
      method: 'GET',
      path: `${PATH}:file`,
      // The image proxies of mail hosts request everything from a few addresses.
      isLimited: false,
      isBesideApi: true,
      async handle({ params }): Promise<PublicAnswer> {
        const [, hash = '', extension] = FILE_NAME.exec(params['file'] ?? '') ?? []
        const file = hash === '' ? undefined : await findPublicFile(database.reader, hash)
        if (!file || EXTENSIONS[file.kind] !== extension) throw new AppError('not_found', 'no such image')
        return {
          pieces: partsOf(file, part => memory.take(hash, file, part)),
          length: file.octets,
          mediaType: MEDIA_TYPES[file.kind],
          // An image opened as a page can run nothing and has no origin.
          contentSecurityPolicy: "default-src 'none'; sandbox",
          publicity: { cacheSeconds: YEAR_SECONDS, isImmutable: true, isIndexable: false },
        }
      },
    },
  ]
}

async function* partsOf(
  file: PublicFile,
  take: (part: number) => Promise<Uint8Array>,
): AsyncIterable<Uint8Array> {
  for (let part = 0; part < countParts(file); part++) yield await take(part)
}

/** Parts of files, the longest unused first. */
class PartMemory {
  private readonly read: (file: PublicFile, part: number) => Promise<Uint8Array>
  private readonly kept = new Map<string, Uint8Array>()
  private readonly reading = new Map<string, Promise<Uint8Array>>()
  private octets = 0

  constructor(read: PartMemory['read']) {
    this.read = read
  }

  async take(hash: string, file: PublicFile, part: number): Promise<Uint8Array> {
    const key = `${hash} ${part}`
    const kept = this.kept.get(key) ?? (await this.load(key, file, part))
    this.kept.delete(key)
    this.kept.set(key, kept)
    return kept
  }

  private async load(key: string, file: PublicFile, part: number): Promise<Uint8Array> {
    const others = this.reading.get(key)
    if (others) return others
    const reading = this.read(file, part).finally(() => this.reading.delete(key))
    this.reading.set(key, reading)
    const octets = await reading
    this.octets += octets.length
    for (const [longestUnused, { length }] of this.kept) {
      if (this.octets <= KEPT_OCTETS) break
      this.kept.delete(longestUnused)
      this.octets -= length
    }
    return octets
  }
}
