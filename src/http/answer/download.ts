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
import type { Log } from '../../world/log.js'
import type { Clock } from '../../world/time/clock.js'
import type { Principal } from '../principal.js'

/** A handler's answer that is a file. */
export interface Download {
  readonly fileName: string
  /** Default: that of the route. */
  readonly mediaType?: string
  /** @param gone aborts once the client is gone, so that generation can stop */
  readonly pieces: (gone: AbortSignal) => AsyncIterable<string | Uint8Array>
}

/** Concurrent downloads per key, per workspace including its sandbox, and in total. */
export const MAX_PER_KEY = 2
export const MAX_PER_WORKSPACE = 4
const MAX_TOTAL = 40
const RETRY_AFTER_MS = 10_000
/** A client that reads nothing for this long is disconnected. */
export const STALLED_MS = 10_000
/** Octets written at a time: what a client must read within `STALLED_MS`. */
const CHUNK = 16_384

/** Counts concurrent downloads, until they are sent or the client is gone. */
export class DownloadPlaces {
  private readonly taken = new Map<string, number>()

  /** @returns releases the place; idempotent @throws AppError rate_limited, unavailable */
  take({ keyId, liveWorkspaceId }: Pick<Principal, 'keyId' | 'liveWorkspaceId'>): () => void {
    const holders = [
      { name: `key ${keyId}`, most: MAX_PER_KEY, whose: 'per key' },
      { name: `workspace ${liveWorkspaceId}`, most: MAX_PER_WORKSPACE, whose: 'per workspace' },
      { name: 'all', most: MAX_TOTAL, whose: 'in total' },
    ]
    for (const { name, most, whose } of holders)
      if ((this.taken.get(name) ?? 0) >= most)
        throw new AppError(
          name === 'all' ? 'unavailable' : 'rate_limited',
          `at most ${most} concurrent downloads are allowed ${whose}; try again when one has ended`,
          { retryAfterMs: RETRY_AFTER_MS },
        )
    for (const { name } of holders) this.taken.set(name, (this.taken.get(name) ?? 0) + 1)
    let isTaken = true
    return () => {
      if (isTaken) for (const { name } of holders) this.giveBack(name)
      isTaken = false
    }
  }

  private giveBack(name: string): void {
    const left = (this.taken.get(name) ?? 0) - 1
    if (left > 0) this.taken.set(name, left)
    else this.taken.delete(name)
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
  let piece = await source.next()
  ctx.status = 200
  const mediaType = file.mediaType ?? usualType
  ctx.set('Content-Type', isText(mediaType) ? `${mediaType}; charset=utf-8` : mediaType)
  ctx.set('Content-Disposition', `attachment; filename="${fileName}"`)
  ctx.respond = false
  try {
    if (ctx.method === 'HEAD') return void res.end()
    for (; !piece.done && !res.destroyed; piece = await source.next())
      await sendPiece(res, Buffer.from(piece.value), clock, stalledMs)
    if (res.destroyed) return
    res.end()
    if (!res.writableFinished) await taken(res, 'finish', clock, stalledMs)
  } catch (error) {
    log.error('download interrupted', {
      requestId: ctx.state['requestId'] as string,
      error: describeError(error),
    })
    res.destroy()
  } finally {
    await source.return?.()
  }
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
