/** Measures event loop delay: how late timers fire. Costs one timer. */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Seconds. */
export interface LoopDelays {
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface LoopDelayMeter {
  take(): LoopDelays
  close(): void
}

const RESOLUTION_MS = 20
const NANOSECONDS = 1e9

export function openLoopDelayMeter(): LoopDelayMeter {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  const seconds = (nanoseconds: number) =>
    Math.max(0, (Number.isFinite(nanoseconds) ? nanoseconds : 0) / NANOSECONDS - RESOLUTION_MS / 1_000)
  return {
    take() {
      const [p50, p99] = [seconds(histogram.percentile(50)), seconds(histogram.percentile(99))]
      const max = seconds(histogram.max)
      const isEmpty = histogram.count === 0
      histogram.reset()
      return isEmpty ? { p50: 0, p99: 0, max: 0 } : { p50, p99, max }
    },
    close: () => void histogram.disable(),
  }
}
