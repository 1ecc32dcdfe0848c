/**
 * A program of its own: servers on 127.0.0.0/8 that take mail's time and never take mail, some that do, and a name server
 * that is silent about most names.
 *
 * Started by `tarpits.ts`. Arguments: how many addresses for each kind of `KINDS`. Writes its ports to standard output as JSON.
 * The kind of an address is its second octet: 127.(10 + kind).x.y.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { decode, encode, type Answer } from 'dns-packet'
import { addressOf, KINDS } from './tarpit-addresses.js'

const EXTENSIONS = '250-tarpit.example\r\n250-PIPELINING\r\n250 8BITMIME\r\n'
const OCTET_MS = 1_000

const speak: Readonly<Record<(typeof KINDS)[number], (socket: Socket) => void>> = {
  'never greets': () => {},
  'one octet a second': socket => {
    const greeting = `220 ${'x'.repeat(400)}\r\n`
    let sent = 0
    const timer = setInterval(() => socket.write(greeting[sent++ % greeting.length] ?? 'x'), OCTET_MS)
    socket.on('close', () => clearInterval(timer))
  },
  'stalls after the dot': socket => serve(socket, false),
  'takes mail': socket => serve(socket, true),
}

function serve(socket: Socket, takesMail: boolean): void {
  let unread = Buffer.alloc(0)
  let isMessage = false
  socket.write('220 tarpit.example ESMTP\r\n')
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk])
    for (;;) {
      const mark = isMessage ? '\r\n.\r\n' : '\r\n'
      const end = unread.indexOf(mark)
      if (end < 0) break
      const line = isMessage ? '' : unread.toString('latin1', 0, end).toUpperCase()
      unread = unread.subarray(end + mark.length)
      if (!isMessage) socket.write(answerTo(line))
      else if (takesMail) socket.write('250 2.0.0 taken\r\n')
      isMessage = line === 'DATA'
      if (line === 'QUIT') socket.end()
    }
    // Of a message only what may be the beginning of its end has to be kept.
    if (isMessage) unread = unread.subarray(-5)
  })
}

function answerTo(line: string): string {
  if (line.startsWith('EHLO')) return EXTENSIONS
  if (line === 'DATA') return '354 go on\r\n'
  if (line === 'QUIT') return '221 2.0.0 bye\r\n'
  return '250 2.0.0 ok\r\n'
}

async function listen(kind: (typeof KINDS)[number], address: string, port: number): Promise<Server> {
  const server = createServer(socket => {
    socket.setNoDelay(true).on('error', () => socket.destroy())
    speak[kind](socket)
  })
  server.listen({ host: address, port, backlog: 100 })
  await once(server, 'listening')
  return server
}

/**
 * Tells of `*.sts.example` that it has a mail exchanger and an MTA-STS policy, whose host nobody can find; of nothing else
 * anything.
 */
async function openNames(): Promise<number> {
  const socket = createSocket('udp4')
  socket.on('message', (octets, peer) => {
    const query = decode(octets)
    const question = query.questions?.[0]
    const answers = question && answersTo(question.type, question.name)
    if (!answers) return
    socket.send(
      encode({ type: 'response', id: query.id!, questions: query.questions!, answers }),
      peer.port,
      peer.address,
    )
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket.address().port
}

function answersTo(type: string, name: string): Answer[] | undefined {
  if (name.startsWith('mta-sts.') || !name.endsWith('.sts.example')) return undefined
  const head = { name, ttl: 3_600 }
  if (type === 'MX') return [{ ...head, type, data: { exchange: `mx.${name}`, preference: 10 } }]
  if (type === 'A') return [{ ...head, type, data: '127.0.0.9' }]
  if (type === 'TXT' && name.startsWith('_mta-sts.')) return [{ ...head, type, data: 'v=STSv1; id=1;' }]
  return []
}

const counts = process.argv.slice(2).map(Number)
let port = 0
for (const [kind, count] of counts.entries())
  for (let number = 0; number < count; number += 1) {
    const server = await listen(KINDS[kind]!, addressOf(kind, number), port)
    port = (server.address() as AddressInfo).port
  }
process.stdout.write(`${JSON.stringify({ port, dnsPort: await openNames() })}\n`)
