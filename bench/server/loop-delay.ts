/**
 * Preloaded into the server under test (`node --import`): measures how late its event loop is, and writes that to the
 * file named by BENCH_LOOP_DELAYS when the process ends.
 */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** How often it looks, ms; what the histogram tells is the time between two looks. */
const RESOLUTION_MS = 1
/** Starting is one long run; what comes after is measured. */
const AFTER_START_MS = 1_500

const file = process.env['BENCH_LOOP_DELAYS'] ?? ''
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
setTimeout(() => histogram.enable(), AFTER_START_MS).unref()
process.once('exit', () => {
  const inMs = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  writeFileSync(file, JSON.stringify({ p99Ms: inMs(histogram.percentile(99)), mostMs: inMs(histogram.max) }))
})
