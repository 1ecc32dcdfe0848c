/**
 * A machine that is busy with other things: each core spins, and commands get about a third of the time.
 *
 * A control group holds them to that third where this user may make one (cgroup v1 or v2); elsewhere their niceness does, beside the spinning.
 */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'

const PERIOD_US = 100_000

export interface Busyness extends Disposable {
  /** Put before a command, e.g. `nice -n 5`. */
  readonly through: readonly string[]
}

export function keepBusy(): Busyness {
  const spinning = cpus().map(() => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }))
  const group = makeGroup()
  return {
    through: group
      ? ['sh', '-c', `echo $$ >${join(group, 'cgroup.procs')}; exec "$@"`, 'sh']
      : ['nice', '-n', '5'],
    [Symbol.dispose]() {
      for (const child of spinning) child.kill('SIGKILL')
      if (group) removeGroup(group)
    },
  }
}

/** @returns folder of a control group that gets a third of all cores; undefined where none can be made */
function makeGroup(): string | undefined {
  const quota = Math.round((cpus().length * PERIOD_US) / 3)
  const limits = [
    { parent: '/sys/fs/cgroup/cpu', file: 'cpu.cfs_quota_us', value: String(quota) },
    { parent: '/sys/fs/cgroup', file: 'cpu.max', value: `${quota} ${PERIOD_US}` },
  ]
  for (const { parent, file, value } of limits) {
    const folder = join(parent, `postroad-tests-${process.pid}`)
    try {
      mkdirSync(folder)
      if (existsSync(join(folder, file))) {
        writeFileSync(join(folder, file), value)
        return folder
      }
      rmdirSync(folder)
    } catch {
      // Not this user's, or no control groups of this version.
    }
  }
  return undefined
}

/** Servers that tests left behind keep it; it then goes with the machine. */
function removeGroup(folder: string): void {
  try {
    rmdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error
  }
}
