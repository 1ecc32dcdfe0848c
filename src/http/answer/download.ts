/**
 * Streams an answer of any length while it is generated.
 *
 * Called by `app.ts`. The next piece is generated once the client has read the previous ones; a client that reads nothing for ten
 * seconds is disconnected. Concurrent downloads are limited per key and per workspace. The first piece is generated before the status
 * is sent, so early failures are ordinary errors.
 * Fails: as generating the first piece does; after that the connection is closed, which marks the answer as incomplete (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { AppError, describeError } from '../../core/errors.js'
import { FairShares, type Shortage } from '../../core/fair-shares.js'
import type { Holder } from '../../core/holder.js'
import type { Log } from '../../world/log.js'
import type { Clock } from '../../world/time/clock.js'

/** A handler's answer that is a file. */
export interface Download {
  readonly fileName: string
  /** Default: that of the route. */
  readonly mediaType?: string
  /** @param gone aborts once the client is gone, so that generation can stop */
  readonly pieces: (gone: AbortSignal) => AsyncIterable<string | Uint8Array>
}

/** Concurrent downloads per key, per workspace including its sandbox, and in total, of which every workspace gets a part. */
export const MAX_PER_KEY = 2
export const MAX_PER_WORKSPACE = 4
const MAX_TOTAL = 40
const RETRY_AFTER_MS = 10_000
/** A client that reads nothing for this long is disconnected. */
export const STALLED_MS = 10_000
/** Octets written at a time: what a client must read within `STALLED_MS`. */
const CHUNK = 16_384

const LIMIT_TEXTS: Readonly<Record<Shortage, string>> = {
  key: `at most ${MAX_PER_KEY} concurrent downloads are allowed per key; try again when one has ended`,
  owner: `at most ${MAX_PER_WORKSPACE} concurrent downloads are allowed per workspace; try again when one has ended`,
  all: `at most ${MAX_TOTAL} concurrent downloads are allowed in total; try again when one has ended`,
}

/** Counts concurrent downloads, until they are sent or the client is gone. */
export class DownloadPlaces {
  private readonly shares = new FairShares(MAX_TOTAL, { perKey: MAX_PER_KEY, perOwner: MAX_PER_WORKSPACE })

  /** @returns releases the place; call once @throws AppError rate_limited, unavailable */
  take(holder: Holder): () => void {
    const shortage = this.shares.take(holder)
    if (shortage !== undefined)
      throw new AppError(shortage === 'all' ? 'unavailable' : 'rate_limited', LIMIT_TEXTS[shortage], {
        retryAfterMs: RETRY_AFTER_MS,
      })
    return () => this.shares.release(holder)
  }
}

/** Resolves once everything is sent, or the client is gone. */
export async function sendDownload(
  ctx: Context,
  { fileName, pieces, ...file }: Download,
  usualType: string,
  {
    clock,
    log,
    isControl = false,
  }: { readonly clock: Clock; readonly log: Log; readonly isControl?: boolean },
): Promise<void> {
  const { res } = ctx
  // The reader of a command's output may pause indefinitely.
  const stalledMs = isControl ? undefined : STALLED_MS
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  const source = pieces(gone.signal)[Symbol.asyncIterator]()
  const piece = await source.next()
  ctx.status = 200
  const mediaType = file.mediaType ?? usualType
  ctx.set('Content-Type', isText(mediaType) ? `${mediaType}; charset=utf-8` : mediaType)
  ctx.set('Content-Disposition', `attachment; filename="${fileName}"`)
  try {
    await sendPieces(ctx, source, piece, clock, stalledMs)
  } catch (error) {
    log.error('download interrupted', {
      requestId: ctx.state['requestId'] as string,
      error: describeError(error),
    })
  }
}

/**
 * Sends pieces as the client reads them. Resolves once everything is sent, or the client is gone.
 *
 * @param first already taken from the source @throws what making a later piece throws; the connection is closed then
 */
export async function sendPieces(
  ctx: Context,
  source: AsyncIterator<string | Uint8Array>,
  first: IteratorResult<string | Uint8Array>,
  clock: Clock,
  stalledMs: number | undefined,
): Promise<void> {
  const { res } = ctx
  ctx.respond = false
  try {
    if (ctx.method === 'HEAD') return void res.end()
    for (let piece = first; !piece.done && !res.destroyed; piece = await source.next())
      await sendPiece(res, asBuffer(piece.value), clock, stalledMs)
    if (res.destroyed) return
    res.end()
    if (!res.writableFinished) await taken(res, 'finish', clock, stalledMs)
  } catch (error) {
    res.destroy()
    throw error
  } finally {
    await source.return?.()
  }
}

function asBuffer(piece: string | Uint8Array): Buffer {
  return typeof piece === 'string'
    ? Buffer.from(piece)
    : Buffer.from(piece.buffer, piece.byteOffset, piece.length)
}

function isText(mediaType: string): boolean {
  return mediaType.startsWith('text/') || mediaType === 'application/json'
}

export async function sendPiece(
  res: ServerResponse,
  octets: Buffer,
  clock: Clock,
  stalledMs: number | undefined,
): Promise<void> {
  for (let at = 0; at < octets.length && !res.destroyed; at += CHUNK)
    if (!res.write(octets.subarray(at, at + CHUNK))) await taken(res, 'drain', clock, stalledMs)
}

/** Waits until the client has read what was written, or is disconnected. */
function taken(
  res: ServerResponse,
  event: 'drain' | 'finish',
  clock: Clock,
  stalledMs: number | undefined,
): Promise<void> {
  return new Promise(resolve => {
    if (res.closed) {
      resolve()
      return
    }
    const stalled = stalledMs === undefined ? undefined : clock.after(stalledMs, () => res.destroy())
    const done = (): void => {
      stalled?.cancel()
      res.off(event, done).off('close', done)
      resolve()
    }
    res.on(event, done).on('close', done)
  })
}
