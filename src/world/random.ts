/**
 * Randomness: bytes, fractions and key pairs. `SeededRandom` in `fake-random.ts` is the repeatable one for tests.
 */
import { generateKeyPair, randomBytes, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'

export interface Random {
  /** Cryptographically strong bytes. */
  bytes(count: number): Buffer
  /** Uniform in [0, 1); for jitter and shuffling, never for secrets. */
  fraction(): number
  /** A DKIM key pair, made off the main thread (RSA-2048 takes about 100 ms). */
  keyPair(algorithm: 'rsa' | 'ed25519'): Promise<{ privateKey: KeyObject; publicKey: KeyObject }>
}

const generate = promisify(generateKeyPair)

/** RFC 8301 §3.2: signers use at least 2048 bits; larger keys overflow a single DNS string. */
const RSA_BITS = 2048

export const systemRandom: Random = {
  bytes: count => randomBytes(count),
  fraction: () => Math.random(),
  keyPair: algorithm =>
    algorithm === 'rsa' ? generate('rsa', { modulusLength: RSA_BITS }) : generate('ed25519'),
}
