/**
 * Answers a request of which not everything has come, and takes in the rest, so that its client gets to read the answer.
 *
 * Called by `app.ts`. Many clients send all of a request before they read; others read while they send, and stop. The answer
 * leaves at once for those, and what the first ones still send is thrown away: closing on them would make the kernel throw the
 * answer away with it (TCP reset). Standard: RFC 9112 §9.6.
 * Fails: never; who sends without end is cut off.
 */
import type { Context } from 'koa'
import type { Clock } from '../../world/time/clock.js'
import { timeForOctets } from '../../world/net/transfer-time.js'

/** Octets that are thrown away at most: more than any body may have. */
const DISCARD_LIMIT = 256 * 1_024 * 1_024

/** Sends what the context has as its answer; resolves when the client has sent everything, has gone, or was cut off. */
export async function answerEarly(ctx: Context, clock: Clock): Promise<void> {
  const { req, res } = ctx
  ctx.respond = false
  const body = ctx.body as string | Buffer | undefined
  res.setHeader('Connection', 'close')
  // Without it the end of the answer would be the end of the connection, which is not yet.
  res.setHeader('Content-Length', body === undefined ? 0 : Buffer.byteLength(body))
  res.flushHeaders()
  if (body !== undefined && ctx.method !== 'HEAD') res.write(body)
  // Who waits for 100-continue and is not told it sends nothing, but may send it all the same.
  await discardRest(req, clock)
  res.end()
}

async function discardRest(req: Context['req'], clock: Clock): Promise<void> {
  let discarded = 0
  await new Promise<void>(resolve => {
    const startedAt = clock.monotonic()
    const watchTime = (): void => {
      const leftMs = startedAt + timeForOctets(discarded) - clock.monotonic()
      if (leftMs > 0) timer = clock.after(Math.ceil(leftMs), watchTime)
      else resolve()
    }
    let timer = clock.after(timeForOctets(0), watchTime)
    const done = (): void => {
      timer.cancel()
      resolve()
    }
    req.on('data', (chunk: Buffer) => {
      discarded += chunk.length
      if (discarded > DISCARD_LIMIT) done()
    })
    req.once('end', done).once('error', done).once('close', done)
    req.resume()
  })
}
