/** Randomness: bytes, fractions and key pairs. Tests use `SeededRandom`. */
import { generateKeyPair, randomBytes, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'

export interface Random {
  bytes(count: number): Buffer
  /** Uniform in [0, 1); for jitter and shuffling, never for secrets. */
  fraction(): number
  /** A DKIM key pair, made off the main thread (RSA-2048 takes about 100 ms). */
  keyPair(algorithm: 'rsa' | 'ed25519'): Promise<{ privateKey: KeyObject; publicKey: KeyObject }>
}

const generate = promisify(generateKeyPair)

/** RFC 8301 §3.2: signers use at least 2048 bits; larger keys overflow a single DNS string. */
const RSA_BITS = 2048

/** Bytes are fetched in bulk because each system call costs ten times as much as ten bytes. */
const POOL_BYTES = 8_192
let pool = Buffer.alloc(0)
let poolUsed = 0

/** Each byte is used once and then wiped from the pool. */
function fromPool(count: number): Buffer {
  if (count > POOL_BYTES / 16) return randomBytes(count)
  if (poolUsed + count > pool.length) {
    pool = randomBytes(POOL_BYTES)
    poolUsed = 0
  }
  const bytes = Buffer.from(pool.subarray(poolUsed, poolUsed + count))
  pool.fill(0, poolUsed, poolUsed + count)
  poolUsed += count
  return bytes
}

export const systemRandom: Random = {
  bytes: fromPool,
  fraction: () => Math.random(),
  keyPair: algorithm =>
    algorithm === 'rsa' ? generate('rsa', { modulusLength: RSA_BITS }) : generate('ed25519'),
}
