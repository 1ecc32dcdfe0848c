/**
 * Runs a command with a PostgreSQL server of its own: `node with-postgres.js COMMAND ARGUMENT...`, with the server's URL in
 * TEST_POSTGRES_URL. The server is gone when the command ends.
 */
import { spawn } from 'node:child_process'
import { PostgresServer } from './postgres-server.js'

const [command, ...args] = process.argv.slice(2)
if (command === undefined) throw new Error('usage: with-postgres COMMAND ARGUMENT...')
const server = await PostgresServer.create()
const child = spawn(command, args, {
  stdio: 'inherit',
  env: { ...process.env, TEST_POSTGRES_URL: server.url(), TEST_POSTGRES_DATA: server.data },
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => {
  server.remove()
  process.exit(code ?? (signal ? 1 : 0))
})
