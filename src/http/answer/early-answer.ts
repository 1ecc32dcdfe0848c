/**
 * Answers a request that has not arrived completely, and drains the rest so that the client can read the answer.
 *
 * Called by `app.ts`. Some clients read only after sending everything; others read while sending, and stop. The answer is sent at once
 * for the latter, and the rest of the request is discarded for the former: closing early would discard the answer too (TCP reset).
 * Standard: RFC 9112 §9.6.
 * Fails: never; endless requests are cut off.
 */
import type { Context } from 'koa'
import type { Clock } from '../../world/time/clock.js'
import { timeForOctets } from '../../world/net/transfer-time.js'

/** Octets discarded at most; larger than any body may be. */
const DISCARD_LIMIT = 256 * 1_024 * 1_024

/** Sends the context's answer; resolves once the client has sent everything, is gone, or was cut off. */
export async function answerEarly(ctx: Context, clock: Clock): Promise<void> {
  const { req, res } = ctx
  ctx.respond = false
  const body = ctx.body as string | Buffer | undefined
  res.setHeader('Connection', 'close')
  // Without it only closing the connection would end the answer.
  res.setHeader('Content-Length', body === undefined ? 0 : Buffer.byteLength(body))
  res.flushHeaders()
  if (body !== undefined && ctx.method !== 'HEAD') res.write(body)
  // A client that gets no 100-continue should send no body, but may do so anyway.
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
