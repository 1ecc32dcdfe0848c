/**
 * How many answers a network gets over UDP, where anybody may write anybody's address as the sender.
 *
 * Asked by `name-server.ts` before anything is looked up. A network that asks for more gets a short answer that sends it to TCP every
 * second time, and nothing otherwise: who really asks is served, and who is made to look as if he did is spared. Memory is bounded: the
 * network heard of longest ago is forgotten. Fails: never.
 */
import { addressKey } from '../world/net/ip-address.js'
import type { Clock } from '../world/time/clock.js'

export type Allowance = 'answer' | 'slip' | 'silence'

interface Bucket {
  /** Answers left at `at`. */
  left: number
  at: number
  over: number
}

/** A second, of one network; a mail host that verifies signatures asks once an hour for each key. */
const ANSWERS_PER_SECOND = 100
const AT_ONCE = 200
const MOST_NETWORKS = 10_000

export class ResponseLimit {
  private readonly buckets = new Map<string, Bucket>()
  private readonly clock: Pick<Clock, 'monotonic'>

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.clock = clock
  }

  take(address: string): Allowance {
    const bucket = this.bucketOf(networkOf(address))
    if (bucket.left >= 1) {
      bucket.left -= 1
      return 'answer'
    }
    bucket.over += 1
    return bucket.over % 2 === 0 ? 'slip' : 'silence'
  }

  private bucketOf(network: string): Bucket {
    const now = this.clock.monotonic()
    const bucket = this.buckets.get(network) ?? { left: AT_ONCE, at: now, over: 0 }
    bucket.left = Math.min(AT_ONCE, bucket.left + ((now - bucket.at) / 1_000) * ANSWERS_PER_SECOND)
    bucket.at = now
    this.buckets.delete(network)
    this.buckets.set(network, bucket)
    const eldest = this.buckets.size > MOST_NETWORKS ? this.buckets.keys().next().value : undefined
    if (eldest !== undefined) this.buckets.delete(eldest)
    return bucket
  }
}

/** /24 of IPv4, /48 of IPv6: what one party has at the least, and can write as its address. */
function networkOf(address: string): string {
  const key = addressKey(address)
  return key
    .split(key.includes(':') ? ':' : '.')
    .slice(0, 3)
    .join('.')
}
