/** A separate disk for a data folder, small enough to be filled. Needs root; removed with its test. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Scope } from '../scope.js'

const MEGABYTE = 1_024 * 1_024
/** Octets of a write of the filler; the last ones are smaller. */
const PIECES = [MEGABYTE, 4_096, 1]

export interface SmallDisk {
  /** To be handed to `install`. */
  mountAt(dataDir: string): void
  /** Somebody else's file takes the room that there is. @param left octets that stay free */
  fill(left?: number): void
  /** That file is deleted. */
  makeRoom(): void
  /** The kernel finds damage on it and takes no more writes. @returns false if this kernel cannot be told to */
  turnReadOnly(): boolean
  /** It is checked and mounted once more; nobody may be using it. */
  repair(): void
  /** Octets. */
  readonly free: number
}

/** A separate ext4, which decides as a real one what is on disk. */
export function smallDisk(t: Scope, megabytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-disk-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const image = join(folder, 'image')
  let mounted = ''
  const filler = () => join(mounted, 'of-somebody-else')
  const free = () => {
    const { bavail, bsize } = statfsSync(mounted)
    return bavail * bsize
  }
  return {
    mountAt(dataDir) {
      closeSync(openSync(image, 'w'))
      truncateSync(image, megabytes * MEGABYTE)
      execFileSync('mkfs.ext4', ['-q', '-m', '0', image])
      mkdirSync(dataDir, { mode: 0o700 })
      execFileSync('mount', ['-o', 'loop', image, dataDir])
      mounted = dataDir
      // A process that was killed a moment ago may still have it open.
      t.teardown(() => void execFileSync('umount', ['--lazy', dataDir]))
    },
    fill(left = 0) {
      const file = openSync(filler(), 'a')
      for (const size of PIECES)
        try {
          const octets = Buffer.alloc(size)
          while (left === 0 || free() - size > left) writeSync(file, octets)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
        }
      try {
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
    },
    makeRoom: () => rmSync(filler(), { force: true }),
    turnReadOnly() {
      const trigger = `/sys/fs/ext4/${basename(deviceOf(mounted))}/trigger_fs_error`
      if (!existsSync(trigger)) return false
      execFileSync('mount', ['-o', 'remount,errors=remount-ro', mounted])
      writeFileSync(trigger, '1')
      return true
    },
    repair() {
      execFileSync('umount', [mounted])
      // 1: errors were corrected.
      const { status } = spawnSync('e2fsck', ['-p', '-f', image])
      if (status !== 0 && status !== 1) throw new Error(`e2fsck ended with ${String(status)}`)
      execFileSync('mount', ['-o', 'loop', image, mounted])
    },
    get free() {
      return free()
    },
  }
}

function deviceOf(folder: string): string {
  const line = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .find(one => one.split(' ')[1] === folder)
  if (line === undefined) throw new Error(`${folder} is no mount`)
  return line.split(' ')[0] ?? ''
}
