/**
 * A pool of delivery threads that another one can take the place of while mail is delivered: so routes and sites are read again.
 *
 * Opened by the composition root between the queue and the pool. Deliveries go to the newest pool; an older one finishes what it has in
 * hand, says goodbye on its connections and ends its threads. Knows no options and no SMTP. Fails: as the pools do.
 */
import type { WorkerPool } from './worker-pool.js'

export interface ReplaceablePool extends WorkerPool {
  /** From now on this one delivers. */
  replace(next: WorkerPool): void
}

export function replaceablePool(first: WorkerPool): ReplaceablePool {
  let current = first
  const leaving = new Set<WorkerPool>()

  async function retire(pool: WorkerPool): Promise<void> {
    leaving.add(pool)
    try {
      await pool.close()
      await pool.terminate()
    } finally {
      leaving.delete(pool)
    }
  }

  return {
    deliver: (job, signal) => current.deliver(job, signal),
    render: request => current.render(request),
    replace(next) {
      const former = current
      current = next
      void retire(former)
    },
    async close() {
      await Promise.all([current, ...leaving].map(pool => pool.close()))
    },
    async terminate() {
      await Promise.all([current, ...leaving].map(pool => pool.terminate()))
    },
  }
}
