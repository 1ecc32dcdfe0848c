/**
 * Preloaded into the server under test (`node --import`): measures how late its event loop is and the most CPU time that it used without
 * a pause, and writes that to the file named by BENCH_LOOP_DELAYS when the process ends.
 *
 * CPU time also tells on a machine that others use, where a delay may be their fault.
 */
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** How often it looks, ms; what the histogram tells is the time between two looks. */
const RESOLUTION_MS = 1
/** Starting is one long run; what comes after is measured. */
const AFTER_START_MS = 1_500

const file = process.env['BENCH_LOOP_DELAYS'] ?? ''
const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
/** CPU time of the main thread between two looks: the most, and how often it was long; µs. */
const LONG = 10_000
let [mostCpu, longRuns] = [0, 0]
setTimeout(() => {
  histogram.enable()
  let before = cpuTime()
  setInterval(() => {
    const now = cpuTime()
    mostCpu = Math.max(mostCpu, now - before)
    if (now - before > LONG) longRuns += 1
    before = now
  }, RESOLUTION_MS).unref()
}, AFTER_START_MS).unref()
process.once('exit', () => {
  const inMs = (nanoseconds: number) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  const delays = {
    p99Ms: inMs(histogram.percentile(99)),
    mostMs: inMs(histogram.max),
    mostCpuMs: mostCpu / 1e3,
    longRuns,
  }
  writeFileSync(file, JSON.stringify(delays))
})

function cpuTime(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}
