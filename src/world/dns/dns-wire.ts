/**
 * One DNS query to one server, over UDP, and over TCP if the answer is truncated. Checks only that the response matches; never retries.
 *
 * Standards: RFC 1035 §4 (format, transport), RFC 5452 §9 (fresh port and random id per query, question checked), RFC 6891 (EDNS0),
 * RFC 7766 (TCP). Rejects with the socket's error, or one that says what was wrong with the answer.
 */
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { decode, encode, RECURSION_DESIRED, streamEncode, type DecodedPacket } from 'dns-packet'
import type { Clock } from '../time/clock.js'
import { ipVersion } from '../net/ip-address.js'
import type { Random } from '../random.js'

/** Record types needed to send mail. */
export type RecordKind = 'MX' | 'A' | 'AAAA' | 'TXT' | 'CNAME' | 'NS' | 'PTR'

export interface Question {
  readonly type: RecordKind
  /** ASCII, lower case, without trailing dot. */
  readonly name: string
}

export interface NameServer {
  readonly address: string
  readonly port: number
}

export interface WireParts {
  readonly clock: Clock
  readonly random: Random
  /** For UDP and TCP each. */
  readonly timeoutMs: number
  /** Aborts queries in progress and closes their sockets. */
  readonly signal?: AbortSignal | undefined
}

/** Largest UDP response that passes unfragmented everywhere (DNS flag day 2020). */
const UDP_PAYLOAD = 1232
export const GIVEN_UP = 'no answer before the time for all lookups ended'

/** Falls back to TCP for a truncated answer (RFC 7766 §5). */
export async function askServer(
  parts: WireParts,
  server: NameServer,
  question: Question,
): Promise<DecodedPacket> {
  const answer = await exchange(parts, server, question, true)
  // RFC 6891 §7: a server that rejects the OPT record is queried again without it.
  return isRefusalOfEdns(answer) ? exchange(parts, server, question, false) : answer
}

async function exchange(parts: WireParts, server: NameServer, question: Question, withEdns: boolean) {
  const query = makeQuery(parts.random, question, withEdns)
  const answer = await overUdp(parts, server, query)
  return answer === 'truncated' ? overTcp(parts, server, query) : answer
}

interface Query {
  readonly id: number
  readonly question: Question
  readonly packet: Parameters<typeof encode>[0]
}

function makeQuery(random: Random, question: Question, withEdns: boolean): Query {
  const id = random.bytes(2).readUInt16BE()
  return {
    id,
    question,
    packet: {
      type: 'query',
      id,
      flags: RECURSION_DESIRED,
      questions: [{ type: question.type, name: question.name, class: 'IN' }],
      additionals: withEdns
        ? [
            {
              type: 'OPT',
              name: '.',
              udpPayloadSize: UDP_PAYLOAD,
              extendedRcode: 0,
              ednsVersion: 0,
              flags: 0,
              flag_do: false,
              options: [],
            },
          ]
        : [],
    },
  }
}

function overUdp(
  { clock, timeoutMs, signal }: WireParts,
  server: NameServer,
  query: Query,
): Promise<DecodedPacket | 'truncated'> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(ipVersion(server.address) === 6 ? 'udp6' : 'udp4')
    const finish = (end: () => void) => {
      timer.cancel()
      signal?.removeEventListener('abort', onAbort)
      // An unhandled error event would end the process.
      socket.removeAllListeners().on('error', () => {})
      socket.close()
      end()
    }
    const onAbort = () => finish(() => reject(new Error(GIVEN_UP)))
    const timer = clock.after(timeoutMs, () => finish(() => reject(new Error('no answer in time'))))
    signal?.addEventListener('abort', onAbort, { once: true })
    socket.once('error', error => finish(() => reject(error)))
    socket.on('message', message => {
      const answer = readAnswer(message, query)
      // A mismatch may be a forgery; keep waiting for the real answer (RFC 5452 §9.1).
      if (answer !== undefined) finish(() => resolve(answer))
    })
    // A connected socket accepts datagrams from this server only. Without a callback, connect errors reach the error event.
    socket.once('connect', () => socket.send(encode(query.packet)))
    socket.connect(server.port, server.address)
  })
}

function overTcp(
  { clock, timeoutMs, signal }: WireParts,
  server: NameServer,
  query: Query,
): Promise<DecodedPacket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: server.address, port: server.port })
    const finish = (end: () => void) => {
      timer.cancel()
      signal?.removeEventListener('abort', onAbort)
      socket.removeAllListeners().on('error', () => {})
      socket.destroy()
      end()
    }
    const fail = (error: Error) => finish(() => reject(error))
    const onAbort = () => fail(new Error(GIVEN_UP))
    const timer = clock.after(timeoutMs, () => fail(new Error('no answer in time over TCP')))
    signal?.addEventListener('abort', onAbort, { once: true })
    let received = Buffer.alloc(0)
    socket.once('connect', () => socket.write(streamEncode(query.packet)))
    socket.once('error', fail).once('close', () => fail(new Error('TCP connection closed without an answer')))
    socket.on('data', chunk => {
      received = Buffer.concat([received, chunk])
      // The two-octet length prefix bounds the buffer (RFC 1035 §4.2.2).
      if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return
      const answer = readAnswer(received.subarray(2, 2 + received.readUInt16BE()), query)
      if (answer === undefined || answer === 'truncated') fail(new Error('answer over TCP is malformed'))
      else finish(() => resolve(answer))
    })
  })
}

const FLAG_RESPONSE = 0x8000
const FLAG_TRUNCATED = 0x0200

/** @returns undefined if the message does not answer this query */
function readAnswer(message: Buffer, query: Query): DecodedPacket | 'truncated' | undefined {
  if (message.length < 12 || message.readUInt16BE(0) !== query.id) return undefined
  const flags = message.readUInt16BE(2)
  if ((flags & FLAG_RESPONSE) === 0) return undefined
  // A truncated answer may end anywhere, so only its header is parsed.
  if ((flags & FLAG_TRUNCATED) !== 0) return 'truncated'
  let packet: DecodedPacket
  try {
    packet = decode(message)
  } catch {
    return undefined
  }
  return echoes(packet, query.question) ? packet : undefined
}

function echoes(packet: DecodedPacket, question: Question): boolean {
  const echoed = packet.questions ?? []
  // A server that could not parse the question may return none.
  if (echoed.length === 0) return isRefusalOfEdns(packet)
  const [first] = echoed
  return (
    echoed.length === 1 &&
    first?.type === question.type &&
    first.name.toLowerCase() === question.name &&
    (first.class ?? 'IN') === 'IN'
  )
}

export function responseCode(packet: DecodedPacket): string {
  return (packet as DecodedPacket & { readonly rcode: string }).rcode
}

function isRefusalOfEdns(packet: DecodedPacket): boolean {
  return ['FORMERR', 'NOTIMP'].includes(responseCode(packet))
}
