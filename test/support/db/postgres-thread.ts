/**
 * Thread of `statements-in-place.ts`: runs statements, one at a time, each on an open connection to its database if there is one.
 *
 * A connection is closed when nobody has used it for a second, or the server has ended it.
 */
import pg from 'pg'
import { parentPort, type MessagePort } from 'node:worker_threads'

export interface Asked {
  readonly url: string
  readonly statement: string
  readonly port: MessagePort
  /** Set to 1 once the answer is there. */
  readonly isAnswered: Int32Array
}

export type Answer = { readonly rows: readonly (readonly unknown[])[] } | { readonly error: string }

const IDLE_MS = 1_000

interface Connection {
  readonly client: pg.Client
  timer: NodeJS.Timeout | undefined
}

const connections = new Map<string, Promise<Connection>>()

parentPort?.on('message', (asked: Asked) => void answer(asked))

async function answer({ url, statement, port, isAnswered }: Asked): Promise<void> {
  port.postMessage(await run(url, statement))
  Atomics.store(isAnswered, 0, 1)
  Atomics.notify(isAnswered, 0)
}

async function run(url: string, statement: string): Promise<Answer> {
  try {
    const connection = await (connections.get(url) ?? connect(url))
    clearTimeout(connection.timer)
    try {
      const { rows } = await connection.client.query<unknown[]>({ text: statement, rowMode: 'array' })
      return { rows }
    } finally {
      connection.timer = setTimeout(() => close(url, connection), IDLE_MS)
    }
  } catch (error) {
    return { error: String(error) }
  }
}

function connect(url: string): Promise<Connection> {
  const client = new pg.Client({ connectionString: url })
  const opening = client.connect().then(() => ({ client, timer: undefined }))
  connections.set(url, opening)
  const forget = () => {
    if (connections.get(url) === opening) connections.delete(url)
  }
  client.on('error', forget)
  client.on('end', forget)
  opening.catch(forget)
  return opening
}

function close(url: string, { client }: Connection): void {
  connections.delete(url)
  client.end().catch(() => {})
}
