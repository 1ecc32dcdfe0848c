/**
 * Runs a command with a PostgreSQL server of its own: `node with-postgres.js COMMAND ARGUMENT...`, with the server's URL in
 * TEST_POSTGRES_URL. The server listens on a socket in a temporary folder only, and is gone when the command ends.
 *
 * Needs Debian's postgresql package. Started by root, the server runs as the user `postgres`, since it refuses to run as root.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'

const VERSIONS = '/usr/lib/postgresql'
const SETTINGS = [
  "listen_addresses=''",
  // Test databases are thrown away; what survives a crash of the server is tested by killing its processes, not the machine.
  'fsync=off',
  'max_connections=300',
  'shared_buffers=64MB',
]

const [command, ...args] = process.argv.slice(2)
if (command === undefined) throw new Error('usage: with-postgres COMMAND ARGUMENT...')
// Short: a socket's path has at most 107 octets.
const folder = mkdtempSync('/tmp/postroad-pg-')
const programs = findPrograms()
const asRoot = userInfo().uid === 0
if (asRoot) {
  const [uid, gid] = ['-u', '-g'].map(what =>
    Number(execFileSync('id', [what, 'postgres'], { encoding: 'utf8' })),
  )
  chownSync(folder, uid ?? 0, gid ?? 0)
}
const data = join(folder, 'data')
run('initdb', '-D', data, '-U', 'postroad', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync')
const options = [...SETTINGS, `unix_socket_directories=${folder}`].map(one => `-c ${one}`).join(' ')
run('pg_ctl', '-D', data, '-w', '-l', join(folder, 'log'), '-o', options, 'start')
const child = spawn(command, args, {
  stdio: 'inherit',
  env: {
    ...process.env,
    TEST_POSTGRES_URL: `postgres://postroad@localhost/postgres?host=${folder}`,
    TEST_POSTGRES_DATA: data,
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  spawnSync(...as('pg_ctl', '-D', data, '-w', '-m', 'immediate', 'stop'), { stdio: 'ignore' })
  rmSync(folder, { recursive: true, force: true })
  process.exit(code ?? (signal ? 1 : 0))
})

function findPrograms(): string {
  const versions = existsSync(VERSIONS)
    ? readdirSync(VERSIONS)
        .map(Number)
        .sort((a, b) => b - a)
    : []
  const [newest] = versions
  if (newest === undefined)
    throw new Error(`no PostgreSQL server in ${VERSIONS}: install Debian's postgresql package`)
  return join(VERSIONS, String(newest), 'bin')
}

function as(program: string, ...more: string[]): [string, string[]] {
  const path = join(programs, program)
  return asRoot ? ['runuser', ['-u', 'postgres', '--', path, ...more]] : [path, more]
}

function run(program: string, ...more: string[]): void {
  const { status, stdout, stderr } = spawnSync(...as(program, ...more), { encoding: 'utf8', cwd: '/' })
  if (status !== 0) throw new Error(`${program} failed: ${stderr}${stdout}`)
}
