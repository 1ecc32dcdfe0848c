/** Queue depth and age, counted in a reader thread between scrapes. Fails: as the database does. */
import { Gauge } from 'prom-client'
import type { Database } from '../db/database.js'
import { measureQueue, type QueueDepth, type Waiting } from '../queue/operator/queue-status-store.js'
import type { Clock } from '../world/time/clock.js'
import { classOf, NAMED_DOMAINS, type DestinationClass } from './destination-class.js'
import { countedBeside } from './counted-beside.js'
import type { Metrics } from './metrics.js'

export interface QueueParts {
  readonly database: Database
  readonly clock: Clock
}

export function followQueue(metrics: Metrics, { database, clock }: QueueParts): void {
  const registers = [metrics.registry]
  const labelNames = ['destination'] as const
  const messages = new Gauge({
    name: 'postroad_queue_messages',
    help: 'Messages waiting for delivery, held ones included, by destination.',
    labelNames,
    registers,
  })
  const oldest = new Gauge({
    name: 'postroad_queue_oldest_seconds',
    help: 'Age of the oldest waiting message, by destination; 0 if none waits.',
    labelNames,
    registers,
  })
  const held = new Gauge({ name: 'postroad_queue_held_messages', help: 'Held messages.', registers })
  const depth = countedBeside(clock, () => measureQueue(database.slowReader, NAMED_DOMAINS))
  metrics.addSource('queue', async () => {
    const counted = await depth()
    const now = clock.now()
    messages.reset()
    oldest.reset()
    for (const [destination, waiting] of byClass(counted)) {
      messages.set({ destination }, waiting.messages)
      const { oldestAt = now } = waiting
      oldest.set({ destination }, Math.max(0, now - oldestAt) / 1_000)
    }
    held.set(counted.held)
  })
}

function byClass({ named, others }: QueueDepth): ReadonlyMap<DestinationClass, Waiting> {
  const classes = new Map<DestinationClass, Waiting>([['other', others]])
  for (const [domain, waiting] of named) {
    const name = classOf(domain)
    const sum = classes.get(name) ?? { messages: 0, oldestAt: undefined }
    const oldestAt = Math.min(sum.oldestAt ?? Infinity, waiting.oldestAt ?? Infinity)
    classes.set(name, {
      messages: sum.messages + waiting.messages,
      oldestAt: oldestAt === Infinity ? undefined : oldestAt,
    })
  }
  return classes
}
