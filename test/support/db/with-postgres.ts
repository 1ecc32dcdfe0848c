/**
 * Runs a command with a PostgreSQL server of its own: `node with-postgres.js COMMAND ARGUMENT...`, with the server's URL in
 * TEST_POSTGRES_URL, and in TEST_POSTGRES_MIGRATED that of a database after all migrations. The server is gone when the command ends.
 */
import { spawn } from 'node:child_process'
import { openPostgres } from '../../../src/db/postgres/open-postgres.js'
import { FakeLog } from '../../../src/world/fake-log.js'
import { systemRandom } from '../../../src/world/random.js'
import { FakeClock } from '../../../src/world/time/fake-clock.js'
import { noteTimes, POSTGRES_NOTE } from '../suites/note-times.js'
import { PostgresServer } from './postgres-server.js'
import { psql } from './real-postgres.js'

const [command, ...args] = process.argv.slice(2)
if (command === undefined) throw new Error('usage: with-postgres COMMAND ARGUMENT...')
const server = await PostgresServer.create()
const child = spawn(command, args, {
  stdio: 'inherit',
  env: {
    ...process.env,
    TEST_POSTGRES_URL: server.url(),
    TEST_POSTGRES_MIGRATED: await migrate(server.url('migrated')),
    TEST_POSTGRES_DATA: server.data,
  },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  noteTimes({ file: POSTGRES_NOTE, wallMs: Math.round(performance.now()), cpuMs: server.cpuMs })
  server.remove()
  process.exit(code ?? (signal ? 1 : 0))
})

/** Creates it. */
async function migrate(url: string): Promise<string> {
  psql(server.url(), 'create database migrated')
  const parts = { clock: new FakeClock(), random: systemRandom, log: new FakeLog() }
  const database = await openPostgres({ url, ...parts })
  await database[Symbol.asyncDispose]()
  return url
}
