/** Storage metrics: database and log size, free disk space, commit duration. Fails: never. */
import { Counter, Gauge, Histogram } from 'prom-client'
import type { Database } from '../db/database.js'
import type { OnCommitted } from '../db/sqlite/group-commit.js'
import type { Disk } from '../world/disk.js'
import type { Metrics } from './metrics.js'

const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5]

export function commitMetrics({ registry }: Metrics): OnCommitted {
  const registers = [registry]
  const seconds = new Histogram({
    name: 'postroad_database_commit_seconds',
    help: 'Duration of a write transaction, including the sync to disk.',
    buckets: BUCKETS,
    registers,
  })
  const works = new Counter({
    name: 'postroad_database_writes_total',
    help: 'Committed writes; several can share a transaction.',
    registers,
  })
  return (ms, count) => {
    seconds.observe(ms / 1_000)
    works.inc(count)
  }
}

export interface Ground {
  readonly database: Database
  readonly disk: Disk
  readonly dataDir: string
}

export function followGround(metrics: Metrics, { database, disk, dataDir }: Ground): void {
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers: [metrics.registry] })
  const free = gauge('postroad_disk_free_bytes', 'Free space on the disk of the data directory.')
  metrics.addSource('disk', async () => free.set(await disk.freeSpace(dataDir)))
  const { file } = database
  if (!file) return
  const size = gauge('postroad_database_bytes', 'Size of the database file.')
  const unused = gauge('postroad_database_free_bytes', 'Unused space inside the database file.')
  const log = gauge('postroad_database_wal_bytes', 'Size of the write-ahead log.')
  metrics.addSource('database', () => {
    const now = file.size()
    size.set(now.octets)
    unused.set(now.freeOctets)
    log.set(now.logOctets)
  })
}
