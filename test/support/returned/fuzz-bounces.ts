/**
 * `make fuzz-bounces`: reads many broken mails and fails where one throws, takes longer than a second or lets memory grow.
 *
 * Arguments: how many (100000), seed (1). Mails of ../shared/bounces are broken as well where the folder is there. What
 * fails is written to the current folder's `fuzz-failure.eml`.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readReturnedMail } from '../../../src/mail/returned/read-returned-mail.js'
import { brokenMail, hostileMails, seededNumbers, SEEDS } from './returned-mail-fuzz.js'

const [count = 100_000, seed = 1] = process.argv.slice(2).map(Number)
const FOLDER = join(process.cwd(), '..', 'shared', 'bounces')
const MAX_MS = 1_000
const MAX_GROWTH = 200 * 1024 * 1024

const seeds = [...SEEDS, ...realMails()]
const below = seededNumbers(seed)
let slowestMs = 0
let slowest = ''
let memoryBefore = 0

function realMails(): Buffer[] {
  if (!existsSync(FOLDER)) return []
  return readdirSync(FOLDER)
    .filter(name => name.endsWith('.eml'))
    .map(name => readFileSync(join(FOLDER, name)))
}

function attempt(name: string, source: Buffer): void {
  const start = performance.now()
  try {
    readReturnedMail(source)
  } catch (error) {
    fail(`${name} threw ${String(error)}`, source)
  }
  const took = performance.now() - start
  if (took > slowestMs) [slowestMs, slowest] = [took, name]
  if (took > MAX_MS) fail(`${name} took ${took.toFixed()} ms`, source)
}

function fail(why: string, source: Buffer): never {
  writeFileSync('fuzz-failure.eml', source)
  console.error(`${why}; written to fuzz-failure.eml`)
  process.exit(1)
}

for (const { name, source } of hostileMails(600_000)) attempt(name, source)
console.log(`hostile: slowest ${slowestMs.toFixed()} ms (${slowest})`)
slowestMs = 0
for (let index = 0; index < count; index++) {
  attempt(`mail ${index} of seed ${seed}`, brokenMail(below, seeds))
  // What the first thousand needed is the program's own.
  if (index === 1_000) memoryBefore = process.memoryUsage().rss
}
const growth = memoryBefore === 0 ? 0 : process.memoryUsage().rss - memoryBefore
console.log(
  `${count} mails: slowest ${slowestMs.toFixed()} ms (${slowest}), memory grew by ${(growth / 2 ** 20).toFixed()} MB`,
)
if (growth > MAX_GROWTH) process.exit(1)
