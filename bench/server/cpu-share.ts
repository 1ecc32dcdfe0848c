/**
 * Gives a process a share of a CPU by a control group (cgroups(7), version 2 or 1), so that several nodes can be compared on one machine.
 *
 * Needs root. The group is removed with its process.
 */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = '/sys/fs/cgroup'
const PERIOD_US = 100_000

/** @param cpus e.g. 0.25 @returns removes the group, once the process has ended @throws Error without control groups */
export function limitCpu(pid: number, cpus: number): () => void {
  const quota = Math.round(cpus * PERIOD_US)
  const isUnified = existsSync(join(ROOT, 'cgroup.controllers'))
  if (isUnified) writeFileSync(join(ROOT, 'cgroup.subtree_control'), '+cpu')
  const group = join(isUnified ? ROOT : join(ROOT, 'cpu'), `postroad-bench-${pid}`)
  mkdirSync(group)
  if (isUnified) writeFileSync(join(group, 'cpu.max'), `${quota} ${PERIOD_US}`)
  else {
    writeFileSync(join(group, 'cpu.cfs_period_us'), `${PERIOD_US}`)
    writeFileSync(join(group, 'cpu.cfs_quota_us'), `${quota}`)
  }
  writeFileSync(join(group, 'cgroup.procs'), `${pid}`)
  return () => rmdirSync(group)
}
