/**
 * An SMTP server that plays a written dialogue over a real socket, and fails the test when the client departs from it.
 *
 * ```
 * S 220 mx.example ESMTP      send this line
 * C EHLO ...                  expect this line; `...` stands for anything
 * M                           take a message up to its last dot, kept in `messages` with the doubled dots undone
 * TLS                         start TLS with the certificate of mx.example
 * RAW "220 go\r\n250 x\r\n"   send these octets (a JSON string)
 * STALL                       stop reading and stay silent
 * CLOSE                       end the connection
 * RESET                       cut the connection
 * ```
 * One script per connection, in the order of their coming. Several `C` before the first `S` show a pipelined group; where
 * an `S` comes, the client must not have sent more than the dialogue shows. After its last line a script answers QUIT.
 */
import { readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Test } from 'tap'

export interface ScriptedServer {
  readonly port: number
  /** Messages taken by `M`, as the client meant them. */
  readonly messages: readonly Buffer[]
  /** Connections so far. */
  readonly connections: number
  /** Resolves when the client has closed as many connections as there are scripts, each played to its end. */
  readonly played: Promise<void>
  /** Resolves when this many lines of the first script have been played. */
  reached(lines: number): Promise<void>
}

/** Made once with OpenSSL for a hundred years; for tests only. */
export const certificate = {
  key: readFileSync('test/fixtures/tls/mx.example.key.pem'),
  cert: readFileSync('test/fixtures/tls/mx.example.cert.pem'),
}

export async function scriptedServer(t: Test, ...scripts: readonly string[]): Promise<ScriptedServer> {
  const messages: Buffer[] = []
  const sockets = new Set<Socket>()
  const reached = new Signal()
  let connections = 0
  let ended = 0
  let finish: () => void = () => {}
  const played = new Promise<void>(resolve => {
    finish = resolve
  })

  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {}) // the client may cut the line; the dialogue notices
    const script = scripts[connections]
    const isFirst = connections === 0
    connections += 1
    if (script === undefined) {
      t.fail('the client opened one connection too many')
      socket.destroy()
      return
    }
    play(new Peer(socket), linesOf(script), messages, count => {
      if (isFirst) reached.raise(count)
    })
      .catch((error: unknown) => {
        t.fail(error instanceof Error ? error.message : String(error))
        socket.destroy()
      })
      .finally(() => {
        ended += 1
        if (ended === scripts.length) finish()
      })
  })
  const port = await listen(server)
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return {
    port,
    messages,
    played,
    reached: lines => reached.at(lines),
    get connections() {
      return connections
    },
  }
}

function listen(server: Server): Promise<number> {
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}

function linesOf(script: string): string[] {
  return script
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
}

async function play(
  peer: Peer,
  lines: readonly string[],
  messages: Buffer[],
  onLine: (count: number) => void,
) {
  for (const [index, line] of lines.entries()) {
    const [, verb = '', rest = ''] = /^(\S+) ?(.*)$/.exec(line) ?? []
    switch (verb) {
      case 'S':
        if (peer.hasUnread) throw new Error(`before "${line}" the client had said more: ${peer.unreadText}`)
        peer.write(`${rest}\r\n`)
        break
      case 'C': {
        const said = await peer.readLine()
        if (said === undefined) throw new Error(`the client left where it should have said: ${rest}`)
        if (!matches(said, rest))
          throw new Error(`the client said "${said}" where it should have said: ${rest}`)
        break
      }
      case 'M': {
        const message = await peer.readMessage()
        if (message === undefined) throw new Error('the client left in the middle of the message')
        messages.push(message)
        break
      }
      case 'RAW':
        peer.write(JSON.parse(rest) as string)
        break
      case 'TLS':
        peer.startTls()
        break
      case 'STALL':
        peer.socket.pause()
        onLine(index + 1)
        return
      case 'CLOSE':
        peer.socket.end()
        break
      case 'RESET':
        peer.socket.resetAndDestroy()
        break
      default:
        throw new Error(`no such line in a dialogue: ${line}`)
    }
    onLine(index + 1)
  }
  // To what is no SMTP the answer is none either: octets of a handshake, any of which may look like the end of a line.
  if (lines.at(-1)?.startsWith('RAW ')) return
  const said = await peer.readLine()
  if (said === 'QUIT') peer.socket.end('221 2.0.0 bye\r\n')
  else if (said !== undefined) throw new Error(`after the dialogue the client said: ${said}`)
}

function matches(said: string, pattern: string): boolean {
  const parts = pattern.split('...').map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(said)
}

/** The server's end of a connection, read line by line. */
class Peer {
  socket: Socket
  private received = Buffer.alloc(0)
  private isOver = false
  private wake: () => void = () => {}

  constructor(socket: Socket) {
    this.socket = socket
    this.attach()
  }

  get hasUnread(): boolean {
    return this.received.length > 0
  }

  get unreadText(): string {
    return this.received.toString('latin1')
  }

  write(text: string): void {
    this.socket.write(text)
  }

  /** @returns undefined when the client has closed */
  readLine(): Promise<string | undefined> {
    return this.readUntil('\r\n').then(octets => octets?.toString('utf8'))
  }

  async readMessage(): Promise<Buffer | undefined> {
    // A message that begins with its end is an empty one.
    if (this.received.length < 3) await this.more()
    if (this.received.subarray(0, 3).equals(Buffer.from('.\r\n'))) {
      this.received = this.received.subarray(3)
      return Buffer.alloc(0)
    }
    const octets = await this.readUntil('\r\n.\r\n')
    return octets && Buffer.from(`${octets.toString('latin1')}\r\n`.replace(/^\./gm, ''), 'latin1')
  }

  startTls(): void {
    this.socket.removeAllListeners('data').removeAllListeners('close')
    this.socket = new TLSSocket(this.socket, { isServer: true, ...certificate })
    this.socket.on('error', () => {})
    this.attach()
  }

  private attach(): void {
    this.socket.on('data', chunk => {
      this.received = Buffer.concat([this.received, chunk])
      this.wake()
    })
    this.socket.on('close', () => {
      this.isOver = true
      this.wake()
    })
  }

  private async readUntil(end: string): Promise<Buffer | undefined> {
    for (;;) {
      const at = this.received.indexOf(end)
      if (at !== -1) {
        const octets = this.received.subarray(0, at)
        this.received = this.received.subarray(at + end.length)
        return octets
      }
      if (this.isOver) return undefined
      await this.more()
    }
  }

  private more(): Promise<void> {
    return new Promise(resolve => {
      this.wake = resolve
    })
  }
}

/** Lets a test wait until a count has been reached. */
class Signal {
  private count = 0
  private waiting: { count: number; resolve: () => void }[] = []

  raise(count: number): void {
    this.count = count
    for (const { count: wanted, resolve } of this.waiting) if (wanted <= count) resolve()
  }

  at(count: number): Promise<void> {
    if (this.count >= count) return Promise.resolve()
    return new Promise(resolve => this.waiting.push({ count, resolve }))
  }
}
