/** Foreign programs that send mail, run to their end. Needs what `.ci/run` installs; used by `make test-debian` alone. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface ProgramEnded {
  /** Null where it could not be started or was killed. */
  readonly status: number | null
  readonly out: string
  readonly err: string
}

/** Far longer than any of them takes. */
const LIMIT_MS = 60_000

export function runProgram(program: string, args: readonly string[], input = ''): Promise<ProgramEnded> {
  return new Promise(resolve => {
    const child = spawn(program, args, {
      timeout: LIMIT_MS,
      env: { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8' },
    })
    let out = ''
    let err = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (err += text))
    child.stdin.on('error', () => {})
    child.on('error', error => resolve({ status: null, out, err: error.message }))
    child.on('close', status => resolve({ status, out, err }))
    child.stdin.end(input)
  })
}

export function swaks(...options: string[]): Promise<ProgramEnded> {
  return runProgram('swaks', ['--server', '127.0.0.1', '--helo', 'client.test', ...options])
}

export interface MsmtpAccount {
  readonly port: number
  readonly isImplicitTls: boolean
  /** `plain` or `login`. */
  readonly mechanism: string
  readonly key: string
}

/** @param args recipients, after options */
export async function msmtp(
  t: Test,
  account: MsmtpAccount,
  mail: string,
  ...args: readonly string[]
): Promise<ProgramEnded> {
  const folder = mkdtempSync(join(tmpdir(), 'postroad-msmtp-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'msmtprc')
  const lines = [
    'account default',
    'host 127.0.0.1',
    `port ${account.port}`,
    'from app@sender.test',
    `auth ${account.mechanism}`,
    'user apikey',
    `password ${account.key}`,
    'tls on',
    `tls_starttls ${account.isImplicitTls ? 'off' : 'on'}`,
    'tls_certcheck off',
  ]
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 })
  return runProgram('msmtp', [`--file=${file}`, ...args], mail)
}

/** @param args what the script finds in sys.argv */
export function python(script: string, ...args: readonly string[]): Promise<ProgramEnded> {
  return runProgram('/usr/bin/python3', ['-c', script, ...args])
}
