/** Process metrics: CPU, memory, open files and event loop delay. Names follow the official Prometheus clients. */
import { readdir } from 'node:fs/promises'
import { Counter, Gauge } from 'prom-client'
import type { Clock } from '../world/time/clock.js'
import { openLoopDelayMeter } from '../world/time/loop-delay.js'
import type { Metrics } from './metrics.js'

const MICROSECONDS = 1e6

/** @returns stops the event loop meter */
export function followProcess(metrics: Metrics, clock: Clock, version: string): () => void {
  const registers = [metrics.registry]
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers })
  new Gauge({
    name: 'postroad_build_info',
    help: 'Always 1; the labels give the running version.',
    labelNames: ['version', 'node'] as const,
    registers,
  }).set({ version, node: process.version }, 1)
  gauge('process_start_time_seconds', 'Start time of the process, Unix time.').set(
    clock.now() / 1_000 - process.uptime(),
  )
  const processor = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time used by the process, all threads.',
    registers,
  })
  const resident = gauge('process_resident_memory_bytes', 'Resident memory of the process.')
  const heap = gauge('nodejs_heap_size_used_bytes', 'Used heap of the main thread.')
  const files = gauge('process_open_fds', 'Open file descriptors.')
  const delays = new Gauge({
    name: 'postroad_event_loop_delay_seconds',
    help: 'Event loop delay of the main thread since the last scrape.',
    labelNames: ['quantile'] as const,
    registers,
  })
  const meter = openLoopDelayMeter()
  let counted = 0
  metrics.addSource('process', async () => {
    const { user, system } = process.cpuUsage()
    processor.inc((user + system - counted) / MICROSECONDS)
    counted = user + system
    const { rss, heapUsed } = process.memoryUsage()
    resident.set(rss)
    heap.set(heapUsed)
    const { p50, p99, max } = meter.take()
    delays.set({ quantile: '0.5' }, p50)
    delays.set({ quantile: '0.99' }, p99)
    delays.set({ quantile: '1' }, max)
    files.set((await readdir('/proc/self/fd')).length)
  })
  return () => meter.close()
}
