/**
 * Servers that mail is sent to: one that takes everything, and one that never says a word.
 *
 * Called by the scenarios. The taker is Postfix's smtp-sink where it is installed, since it costs least and nobody here
 * wrote it, else `sink-program.ts`; either runs as a process of its own.
 */
import { once } from 'node:events'
import { accessSync, constants } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { start, startNode, stop } from '../server/children.js'

export interface Sink {
  /** Label in the table. */
  readonly name: string
  readonly port: number
  stop(): Promise<void>
}

const POSTFIX_SINK = '/usr/sbin/smtp-sink'
const START_TRIES = 100

export async function openSink(): Promise<Sink> {
  const port = await freePort()
  const isPostfix = isExecutable(POSTFIX_SINK)
  // smtp-sink insists on leaving root behind; more than its usual 256 connections may come.
  const asUser = userInfo().uid === 0 ? ['-u', 'nobody'] : []
  const child = isPostfix
    ? start(POSTFIX_SINK, [...asUser, '-m', '1000', `inet:127.0.0.1:${port}`, '1000'])
    : startNode([fileURLToPath(new URL('sink-program.js', import.meta.url)), String(port)])
  for (let tries = 1; !(await answers(port)); tries += 1) {
    if (tries === START_TRIES || child.exitCode !== null) throw new Error('the sink does not start')
    await sleep(50)
  }
  return {
    name: isPostfix ? "Postfix's smtp-sink" : 'a minimal sink of our own',
    port,
    stop: () => stop(child),
  }
}

/**
 * Accepts connections and never greets: a client waits for its greeting and, having no other connection, begins nothing
 * else. Unlike a closed port it leaves no failed attempts to be written down.
 */
export async function openSilentServer(): Promise<Sink> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    name: 'a server that never greets',
    port: (server.address() as AddressInfo).port,
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

async function freePort(): Promise<number> {
  const server = await openSilentServer()
  await server.stop()
  return server.port
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
