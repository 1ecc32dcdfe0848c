/**
 * Sends an answer that is made while it is sent, so that it may be of any length.
 *
 * Called by `app.ts`. The next piece is made when the client has taken enough of those before; who takes nothing for too long is cut
 * off. The first piece is made before anything is said, so that what cannot be made at all is an ordinary error.
 * Fails: as the making of the first piece does; of a later one the connection is closed, which leaves the answer visibly incomplete
 * (RFC 9112 §8).
 */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import { describeError } from '../../core/errors.js'
import { timeForOctets } from '../../world/net/transfer-time.js'
import type { Log } from '../../world/log.js'
import type { Clock } from '../../world/time/clock.js'

/** What a handler gives where its answer is a file. */
export interface Download {
  readonly fileName: string
  readonly pieces: AsyncIterable<string>
}

export async function sendDownload(
  ctx: Context,
  { fileName, pieces }: Download,
  mediaType: string,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Promise<void> {
  const { res } = ctx
  const source = pieces[Symbol.asyncIterator]()
  let piece = await source.next()
  ctx.status = 200
  ctx.set('Content-Type', `${mediaType}; charset=utf-8`)
  ctx.set('Content-Disposition', `attachment; filename="${fileName}"`)
  ctx.respond = false
  try {
    if (ctx.method === 'HEAD') return void res.end()
    for (; !piece.done && !res.destroyed; piece = await source.next())
      if (!res.write(piece.value)) await drained(res, clock)
    res.end()
  } catch (error) {
    log.error('a download broke off', {
      requestId: ctx.state['requestId'] as string,
      error: describeError(error),
    })
    res.destroy()
  } finally {
    await source.return?.()
  }
}

function drained(res: ServerResponse, clock: Clock): Promise<void> {
  return new Promise(resolve => {
    const stalled = clock.after(timeForOctets(res.writableLength), () => res.destroy())
    const done = (): void => {
      stalled.cancel()
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.on('drain', done).on('close', done)
  })
}
