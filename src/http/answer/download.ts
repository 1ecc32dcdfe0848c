/**
 * Sends an answer that is made while it is sent, so that it may be of any length.
 *
 * Called by `app.ts`. The next piece is made when the client has taken those before; a client that takes nothing for ten seconds is cut
 * off. Of one key and one workspace only a few are sent at a time. The first piece is made before the status is sent, so that what
 * cannot be made at all is an ordinary error.
 * Fails: as the making of the first piece does; of a later one the connection is closed, which leaves the answer visibly incomplete
 * (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { AppError, describeError } from '../../core/errors.js'
import type { Log } from '../../world/log.js'
import type { Clock } from '../../world/time/clock.js'
import type { Principal } from '../principal.js'

/** What a handler gives where its answer is a file. */
export interface Download {
  readonly fileName: string
  /** @param gone aborts when nobody wants the rest: making it may stop */
  readonly pieces: (gone: AbortSignal) => AsyncIterable<string>
}

/** Sent at a time with one key, for one workspace with its sandbox, and in all. */
export const MOST_PER_KEY = 2
export const MOST_PER_WORKSPACE = 4
const MOST_IN_ALL = 40
const COME_AGAIN_MS = 10_000
/** A client takes nothing for so long: it is cut off. */
export const STALLED_MS = 10_000
/** Octets handed over at a time: what a client has to take within `STALLED_MS`. */
const CHUNK = 16_384

/** Places for downloads. What is under way counts until it is sent or its client is gone. */
export class DownloadPlaces {
  private readonly taken = new Map<string, number>()

  /** @returns what gives the place back; harmless when repeated @throws AppError rate_limited, unavailable */
  take({ keyId, liveWorkspaceId }: Pick<Principal, 'keyId' | 'liveWorkspaceId'>): () => void {
    const holders = [
      { name: `key ${keyId}`, most: MOST_PER_KEY, whose: 'with one key' },
      { name: `workspace ${liveWorkspaceId}`, most: MOST_PER_WORKSPACE, whose: 'for one workspace' },
      { name: 'all', most: MOST_IN_ALL, whose: 'in all' },
    ]
    for (const { name, most, whose } of holders)
      if ((this.taken.get(name) ?? 0) >= most)
        throw new AppError(
          name === 'all' ? 'unavailable' : 'rate_limited',
          `at most ${most} downloads run at a time ${whose}; try again when one has ended`,
          { retryAfterMs: COME_AGAIN_MS },
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

/** Resolves once all of it has left, or its client is gone. */
export async function sendDownload(
  ctx: Context,
  { fileName, pieces }: Download,
  mediaType: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  const { res } = ctx
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  const source = pieces(gone.signal)[Symbol.asyncIterator]()
  let piece = await source.next()
  ctx.status = 200
  ctx.set('Content-Type', `${mediaType}; charset=utf-8`)
  ctx.set('Content-Disposition', `attachment; filename="${fileName}"`)
  ctx.respond = false
  try {
    if (ctx.method === 'HEAD') return void res.end()
    for (; !piece.done && !res.destroyed; piece = await source.next())
      await sendPiece(res, Buffer.from(piece.value), clock)
    if (res.destroyed) return
    res.end()
    if (!res.writableFinished) await taken(res, 'finish', clock)
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

async function sendPiece(res: ServerResponse, octets: Buffer, clock: Clock): Promise<void> {
  for (let at = 0; at < octets.length && !res.destroyed; at += CHUNK)
    if (!res.write(octets.subarray(at, at + CHUNK))) await taken(res, 'drain', clock)
}

/** Until the client has taken what was handed over, or was cut off. */
function taken(res: ServerResponse, event: 'drain' | 'finish', clock: Clock): Promise<void> {
  return new Promise(resolve => {
    if (res.closed) {
      resolve()
      return
    }
    const stalled = clock.after(STALLED_MS, () => res.destroy())
    const done = (): void => {
      stalled.cancel()
      res.off(event, done).off('close', done)
      resolve()
    }
    res.on(event, done).on('close', done)
  })
}
