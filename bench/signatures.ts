/**
 * A program of its own: RSA-2048 signatures per second, on one thread and on all threads of the pool.
 *
 * Started by `machine.ts` with UV_THREADPOOL_SIZE set to the number of cores. Argument: ms to measure each; prints
 * `{"alone": N, "pooled": N}`.
 */
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'

/** Kept waiting per thread, so that none ever idles. */
const IN_FLIGHT_PER_THREAD = 4

const measureMs = Number(process.argv[2])
const threads = Number(process.env['UV_THREADPOOL_SIZE'])
const pem = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({
  type: 'pkcs8',
  format: 'pem',
})
const key = createPrivateKey(pem)
/** As much as the header of a mail, which is what a DKIM signature covers. */
const text = Buffer.alloc(1_000, 'x')

function measureAlone(): number {
  let signatures = 0
  const startedAt = performance.now()
  for (; performance.now() - startedAt < measureMs; signatures += 1) sign('sha256', text, key)
  return Math.round((signatures * 1_000) / (performance.now() - startedAt))
}

async function measurePooled(): Promise<number> {
  let signatures = 0
  const startedAt = performance.now()
  const signOn = (): Promise<void> =>
    new Promise((resolve, reject) => {
      sign('sha256', text, key, error => {
        if (error) reject(error)
        signatures += 1
        resolve(performance.now() - startedAt < measureMs ? signOn() : undefined)
      })
    })
  await Promise.all(Array.from({ length: threads * IN_FLIGHT_PER_THREAD }, signOn))
  return Math.round((signatures * 1_000) / (performance.now() - startedAt))
}

const alone = measureAlone()
process.stdout.write(JSON.stringify({ alone, pooled: await measurePooled() }))
