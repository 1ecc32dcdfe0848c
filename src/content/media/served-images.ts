/**
 * The public files of the media library: `/m/<hash>.<extension>`.
 *
 * A file's name is the hash of its octets, so it never changes and may be cached forever. Whether its image still exists is looked up for
 * each request, in every process; octets are kept in memory, since the recipients of a mailing open it within minutes. Memory is bounded:
 * files that are being sent are in it once, however many clients receive them.
 * Fails: AppError not_found; unavailable if too many large files are being sent.
 */
import { AppError } from '../../core/errors.js'
import type { Database } from '../../db/database.js'
import type { PublicAnswer, PublicRoute } from '../../http/public/public-route.js'
import { findPublicFile, readFileOctets, type PublicFile, type StoredFile } from './media-store.js'
import { EXTENSIONS, MEDIA_TYPES, type ImageKind } from './reading/image.js'

const PATH = '/m/'
const FILE_NAME = /^([0-9a-f]{64})\.(png|jpg|gif|webp)$/
const YEAR_SECONDS = 31_536_000
/** Octets in memory, being sent or not. */
const KEPT_OCTETS = 64 * 1_024 * 1_024
const RETRY_AFTER_MS = 5_000

/** @param publicUrl without a trailing slash */
export function fileUrl(publicUrl: string, kind: ImageKind, { hash }: Pick<StoredFile, 'hash'>): string {
  return `${publicUrl}${pathOf(hash)}.${EXTENSIONS[kind]}`
}

/** What the URLs of a file contain, whichever host they name. */
export function pathOf(hash: string): string {
  return `${PATH}${hash}`
}

export function mediaPages({ database }: { readonly database: Database }): PublicRoute[] {
  const memory = new FileMemory(file => readFileOctets(database.reader, file))
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
        const { octets, release } = await memory.take(hash, file)
        return {
          octets,
          mediaType: MEDIA_TYPES[file.kind],
          // An image opened as a page can run nothing and has no origin.
          contentSecurityPolicy: "default-src 'none'; sandbox",
          publicity: { cacheSeconds: YEAR_SECONDS, isImmutable: true, isIndexable: false },
          onSent: release,
        }
      },
    },
  ]
}

interface Kept {
  readonly octets: Buffer
  /** Answers being sent. */
  receivers: number
}

/** Octets by hash, the longest unused first. */
class FileMemory {
  private readonly read: (file: PublicFile) => Promise<Buffer>
  private readonly kept = new Map<string, Kept>()
  private readonly reading = new Map<string, Promise<Buffer>>()
  private octets = 0

  constructor(read: FileMemory['read']) {
    this.read = read
  }

  /** @throws AppError unavailable */
  async take(
    hash: string,
    file: PublicFile,
  ): Promise<{ readonly octets: Buffer; readonly release: () => void }> {
    const kept = this.kept.get(hash) ?? (await this.load(hash, file))
    this.kept.delete(hash)
    this.kept.set(hash, kept)
    kept.receivers += 1
    let isReleased = false
    const release = (): void => {
      if (!isReleased) kept.receivers -= 1
      isReleased = true
    }
    return { octets: kept.octets, release }
  }

  private async load(hash: string, file: PublicFile): Promise<Kept> {
    const others = this.reading.get(hash)
    if (!others) this.makeRoom(file.octets)
    const reading = others ?? this.read(file).finally(() => this.reading.delete(hash))
    this.reading.set(hash, reading)
    const octets = await reading.catch((error: unknown) => {
      if (!others) this.octets -= file.octets
      throw error
    })
    const loaded = this.kept.get(hash) ?? { octets, receivers: 0 }
    this.kept.set(hash, loaded)
    return loaded
  }

  /** Counts the octets at once, so that files read at the same time are all counted. */
  private makeRoom(octets: number): void {
    for (const [hash, kept] of this.kept) {
      if (this.octets + octets <= KEPT_OCTETS) break
      if (kept.receivers > 0) continue
      this.kept.delete(hash)
      this.octets -= kept.octets.length
    }
    if (this.octets > 0 && this.octets + octets > KEPT_OCTETS)
      throw new AppError('unavailable', 'too many images are being sent; try again in a few seconds', {
        retryAfterMs: RETRY_AFTER_MS,
      })
    this.octets += octets
  }
}
