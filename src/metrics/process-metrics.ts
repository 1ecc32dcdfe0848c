/** The process itself: processor, memory, open files, and how late the event loop is. Names as Prometheus' own clients have them. */
import { readdir } from 'node:fs/promises'
import { Counter, Gauge } from 'prom-client'
import type { Clock } from '../world/time/clock.js'
import { openLoopDelayMeter } from '../world/time/loop-delay.js'
import type { Metrics } from './metrics.js'

const MICROSECONDS = 1e6

/** @returns ends what watches the event loop */
export function followProcess(metrics: Metrics, clock: Clock, version: string): () => void {
  const registers = [metrics.registry]
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers })
  new Gauge({
    name: 'postroad_build_info',
    help: 'Always 1; which version runs.',
    labelNames: ['version', 'node'] as const,
    registers,
  }).set({ version, node: process.version }, 1)
  gauge('process_start_time_seconds', 'When the process began, Unix time.').set(
    clock.now() / 1_000 - process.uptime(),
  )
  const processor = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time that the process has had, all threads.',
    registers,
  })
  const resident = gauge('process_resident_memory_bytes', 'Memory of the process, all threads.')
  const heap = gauge('nodejs_heap_size_used_bytes', 'Heap of the main thread in use.')
  const files = gauge('process_open_fds', 'Open files and sockets.')
  const delays = new Gauge({
    name: 'postroad_event_loop_delay_seconds',
    help: 'How late the main thread came to what was due, since the last scrape.',
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
