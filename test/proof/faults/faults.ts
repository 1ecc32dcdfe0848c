/**
 * `make faults`: brings about one fault after the other and prints whether the documented behaviour was seen.
 *
 *   node build/test/proof/faults/faults.js [part of a file's name...]
 *
 * The faults are tests, each in a process of its own: those of this folder, and those of other suites that break the same things. Its own
 * line is `kept`, `BROKEN`, or `left out` with what it lacks. Exit status 1 if one was broken.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { userInfo } from 'node:os'
import { printTable } from '../../../bench/table.js'
import { showProgress } from '../proof.js'

interface FaultFile {
  readonly file: string
  readonly needs?: readonly ('root' | 'PostgreSQL')[]
}

const FILES: readonly FaultFile[] = [
  { file: 'test/debian/full-disk.debian', needs: ['root'] },
  { file: 'test/proof/faults/storage.fault' },
  { file: 'test/proof/faults/names.fault' },
  { file: 'test/proof/faults/process.fault' },
  { file: 'test/proof/faults/receivers.fault' },
  { file: 'test/proof/faults/postgres.fault', needs: ['PostgreSQL'] },
  { file: 'test/nodes/database-restarts.nodes', needs: ['PostgreSQL'] },
  { file: 'test/nodes/partition.nodes', needs: ['PostgreSQL', 'root'] },
  { file: 'test/nodes/database-disk.nodes', needs: ['PostgreSQL', 'root'] },
  { file: 'test/nodes/failover.nodes', needs: ['PostgreSQL'] },
  { file: 'test/nodes/clocks.nodes', needs: ['PostgreSQL'] },
]

const HAS = {
  root: userInfo().uid === 0,
  PostgreSQL: process.env['TEST_POSTGRES_URL'] !== undefined,
}
const FILE_LIMIT_MS = 600_000

/** A line of TAP: `not ok 2 - what was promised # time=812ms`. */
const RESULT = /^(not )?ok \d+ - (.*?)(?: # (?:time=([\d.]+)ms|(SKIP|skip)\s*(.*)))?(?: \{)?$/

const named = process.argv.slice(2)
const rows: string[][] = []
const brokenFiles: string[] = []
for (const { file, needs = [] } of FILES) {
  if (named.length > 0 && !named.some(part => file.includes(part))) continue
  const lacking = needs.filter(what => !HAS[what])
  if (lacking.length > 0) rows.push([file, `left out: needs ${lacking.join(' and ')}`, ''])
  else rows.push(...(await run(file)))
}
showProgress('')
printTable('Faults: what is documented of each, and whether it was seen', [['fault', '', 'seconds'], ...rows])
process.exit(brokenFiles.length > 0 || rows.length === 0 ? 1 : 0)

async function run(file: string): Promise<string[][]> {
  const program = `build/${file}.js`
  if (!existsSync(program)) throw new Error(`${program} is missing: run make build/.built`)
  showProgress(file)
  // Only what needs it is given PostgreSQL: the others are about SQLite.
  const { TEST_POSTGRES_URL: url, ...environment } = process.env
  const isOnPostgres = file.includes('postgres') || file.includes('/nodes/')
  const child = spawn(process.execPath, [program], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...environment,
      ...(isOnPostgres && url !== undefined ? { TEST_POSTGRES_URL: url } : {}),
      TAP_TIMEOUT: String(FILE_LIMIT_MS / 1_000),
    },
  })
  const limit = setTimeout(() => child.kill('SIGTERM'), FILE_LIMIT_MS)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [status] = (await once(child, 'close')) as [number | null]
  clearTimeout(limit)
  const found = output.split('\n').flatMap(line => {
    const [, not, what = '', ms, skip, reason = ''] = RESULT.exec(line) ?? []
    if (what === '') return []
    const result = skip === undefined ? (not === undefined ? 'kept' : 'BROKEN') : `left out: ${reason}`
    return [[what, result, ms === undefined ? '' : (Number(ms) / 1_000).toFixed(1)]]
  })
  if (status === 0 && found.length > 0) return found
  brokenFiles.push(file)
  process.stderr.write(output)
  return found.some(([, result]) => result === 'BROKEN')
    ? found
    : [...found, [`${file} ended with ${String(status)}`, 'BROKEN', '']]
}
