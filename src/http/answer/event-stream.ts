/**
 * Sends a stream of server-sent events while they happen (WHATWG HTML §9.2).
 *
 * Called by `app.ts`. The first piece is generated before the status is sent, so early failures are ordinary errors. A client that reads
 * nothing for ten seconds is disconnected. The stream ends when its source ends; browsers then reconnect.
 */
import type { Context } from 'koa'
import type { Clock } from '../../world/time/clock.js'
import { sendPiece, STALLED_MS } from './download.js'

/** A handler's answer that is a stream of events. */
export interface EventStream {
  /** @param gone aborts once the client is gone @returns pieces made by `eventText` and `HEARTBEAT` */
  readonly pieces: (gone: AbortSignal) => AsyncIterable<string>
}

export const EVENT_STREAM = 'text/event-stream'

/** A comment, which keeps proxies from closing an idle stream. */
export const HEARTBEAT = ': still here\n\n'

/** @param data JSON on one line */
export function eventText(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`
}

/** Resolves once the stream has ended or the client is gone. */
export async function sendEvents(ctx: Context, { pieces }: EventStream, clock: Clock): Promise<void> {
  const { res } = ctx
  const gone = new AbortController()
  res.once('close', () => gone.abort())
  const source = pieces(gone.signal)[Symbol.asyncIterator]()
  let piece = await source.next()
  ctx.status = 200
  ctx.set('Content-Type', EVENT_STREAM)
  // Neither compressed nor collected by proxies; the second field is that of nginx.
  ctx.set('Cache-Control', 'no-store, no-transform')
  ctx.set('X-Accel-Buffering', 'no')
  // A stream that ends while the server shuts down leaves no idle connection behind.
  ctx.set('Connection', 'close')
  ctx.respond = false
  try {
    if (ctx.method === 'HEAD') return void res.end()
    for (; !piece.done && !res.destroyed; piece = await source.next())
      await sendPiece(res, Buffer.from(piece.value), clock, STALLED_MS)
    if (!res.destroyed) res.end()
  } catch {
    res.destroy()
  } finally {
    await source.return?.()
  }
}
