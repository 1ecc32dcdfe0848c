/**
 * A Debian 12 of its own with a real systemd as its first process: systemd-nspawn boots a copy of the tree that `make` keeps (DEBIAN_TREE).
 *
 * It has no network but loopback, and nothing beyond what every Debian has and curl. Needs root. Commands come in by nsenter, since
 * machinectl would need the host to run systemd. Stopped and deleted when the test ends.
 */
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { until } from '../support/until.js'

const BOOT_LIMIT_MS = 120_000
const run = promisify(execFile)

export interface DebianMachine {
  /** Its root folder, as this machine sees it. */
  readonly folder: string
  /** Runs a script of bash as root, with an environment that has nothing but a path; rejects with what it wrote. @returns standard output */
  sh(script: string): Promise<string>
}

export async function bootDebian(t: Test): Promise<DebianMachine> {
  const parent = mkdtempSync(join(tmpdir(), 'debian-'))
  const folder = join(parent, 'root')
  const tree = process.env['DEBIAN_TREE']
  if (tree === undefined) throw new Error('DEBIAN_TREE is not set: run make test-package')
  await run('cp', ['-a', tree, folder])
  const nspawn = spawn(
    'systemd-nspawn',
    // Not known to a systemd of the host, which need not run one.
    [
      '--register=no',
      '--keep-unit',
      '--quiet',
      '--private-network',
      '--console=pipe',
      '--boot',
      '-D',
      folder,
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  const ended = new Promise<void>(resolve => nspawn.once('close', () => resolve()))
  const booted: { leader?: number } = {}
  t.teardown(async () => {
    nspawn.kill('SIGTERM')
    // With its first process all of it goes.
    const hard = setTimeout(() => process.kill(booted.leader ?? nspawn.pid!, 'SIGKILL'), 20_000)
    await ended
    clearTimeout(hard)
    rmSync(parent, { recursive: true, force: true })
  })
  const leader = await until('the first process', () => firstProcess(nspawn.pid!), BOOT_LIMIT_MS)
  booted.leader = leader
  const sh = async (script: string) => {
    const inside = ['-t', String(leader), '-a', '--', 'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin']
    try {
      const { stdout } = await run('nsenter', [...inside, 'bash', '--norc', '-euc', script], {
        maxBuffer: 64 * 1024 * 1024,
      })
      return stdout
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      throw new Error(`${script}\n${stdout}\n${stderr}`, { cause: error })
    }
  }
  const state = async () => (await sh('systemctl is-system-running 2>/dev/null || true')).trim()
  await until('the end of booting', async () => (await state()) === 'running', BOOT_LIMIT_MS)
  return { folder, sh }
}

/** Its first process, once that is systemd: before, it is systemd-nspawn that makes its namespaces, by children that come and go. */
function firstProcess(nspawn: number): number | undefined {
  const children = readProcess(`${nspawn}/task/${nspawn}/children`).split(' ')
  return children.filter(pid => pid !== '' && readProcess(`${pid}/comm`) === 'systemd').map(Number)[0]
}

/** What /proc tells of a process; '' of one that has ended since, before the file was opened (ENOENT) or read (ESRCH). */
function readProcess(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, 'latin1').trim()
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return ''
    throw error
  }
}
