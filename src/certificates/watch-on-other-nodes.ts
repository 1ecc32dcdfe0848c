/**
 * The watch over the certificate on nodes that do not run the jobs: each node has its own files, and jobs run on one of them.
 *
 * Called by the composition root where nodes share a database.
 */
import type { Job } from '../scheduler/scheduler.js'
import type { Clock } from '../world/time/clock.js'

const PERIOD_MS = 60_000

/** @param isRunningJobs whether this node currently runs the jobs, including the watch @returns stops it */
export function watchOnOtherNodes(clock: Clock, watch: Job, isRunningJobs: () => boolean): () => void {
  const stopping = new AbortController()
  const next = () =>
    clock.after(PERIOD_MS, () => {
      void (async () => {
        if (!isRunningJobs()) await watch.run(stopping.signal)
        if (!stopping.signal.aborted) timer = next()
      })()
    })
  let timer = next()
  return () => {
    stopping.abort()
    timer.cancel()
  }
}
