/**
 * Repeatable randomness for tests: the same seed gives the same bytes. Key pairs are real, and generated once per process and
 * algorithm.
 */
import { systemRandom, type Random } from './random.js'

const keyPairs = new Map<string, ReturnType<Random['keyPair']>>()

export class SeededRandom implements Random {
  private state: number

  constructor(seed = 1) {
    this.state = seed >>> 0
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => Math.floor(this.fraction() * 256)))
  }

  fraction(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0
    let mixed = this.state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  keyPair(algorithm: 'rsa' | 'ed25519'): ReturnType<Random['keyPair']> {
    const pair = keyPairs.get(algorithm) ?? systemRandom.keyPair(algorithm)
    keyPairs.set(algorithm, pair)
    return pair
  }
}
