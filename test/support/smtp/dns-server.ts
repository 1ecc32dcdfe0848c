/**
 * A small DNS server on the loopback, UDP and TCP on one port, that answers as a test says.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type AddressInfo, type Server } from 'node:net'
import {
  AUTHORITATIVE_ANSWER,
  decode,
  encode,
  RECURSION_AVAILABLE,
  streamDecode,
  streamEncode,
  TRUNCATED_RESPONSE,
  type Answer,
  type Packet,
} from 'dns-packet'

export const RCODE = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const

export interface ScriptedAnswer {
  readonly rcode?: (typeof RCODE)[keyof typeof RCODE]
  readonly answers?: readonly Answer[]
  readonly authorities?: readonly Answer[]
  readonly truncated?: boolean
  readonly authoritative?: boolean
  /** Put in place of the true one, as a forger would have to guess it. */
  readonly id?: number
  readonly question?: { type: 'A' | 'MX'; name: string }
  /** Over UDP it is sent this much later. */
  readonly afterMs?: number
}

/** As it is sent. */
interface Response {
  readonly packet: Packet
  readonly afterMs: number
}

/** @returns one answer, several (sent one after the other), or `silence` */
export type AnswerWith = (asked: {
  /** E.g. `MX example.com`. */
  readonly question: string
  readonly transport: 'udp' | 'tcp'
  readonly hasEdns: boolean
  readonly id: number
}) => ScriptedAnswer | readonly ScriptedAnswer[] | 'silence'

export interface DnsServer {
  /** `127.0.0.1:port`. */
  readonly address: string
  /** Questions in the order of their coming, e.g. `udp MX example.com`. */
  readonly asked: readonly string[]
  /** Source port and id of each UDP query. */
  readonly sources: readonly { port: number; id: number }[]
  /** Resolves when this many questions have come. */
  heard(count: number): Promise<void>
}

export async function dnsServer(
  t: { teardown(end: () => void): unknown },
  answerWith: AnswerWith,
): Promise<DnsServer> {
  const asked: string[] = []
  const sources: { port: number; id: number }[] = []
  const waiting: { count: number; resolve: () => void }[] = []

  function respond(query: Packet, transport: 'udp' | 'tcp'): Response[] {
    const [question] = query.questions ?? []
    if (question === undefined) return []
    const text = `${question.type} ${question.name}`
    asked.push(`${transport} ${text}`)
    for (const { count, resolve } of waiting) if (count <= asked.length) resolve()
    const hasEdns = (query.additionals ?? []).some(record => record.type === 'OPT')
    const scripted = answerWith({ question: text, transport, hasEdns, id: query.id ?? 0 })
    if (scripted === 'silence') return []
    const list: readonly ScriptedAnswer[] = 'length' in scripted ? scripted : [scripted]
    return list.map(answer => ({
      afterMs: answer.afterMs ?? 0,
      packet: {
        type: 'response' as const,
        id: answer.id ?? query.id,
        flags:
          RECURSION_AVAILABLE |
          (answer.rcode ?? 0) |
          (answer.truncated ? TRUNCATED_RESPONSE : 0) |
          (answer.authoritative ? AUTHORITATIVE_ANSWER : 0),
        questions: [answer.question ?? question],
        answers: [...(answer.answers ?? [])],
        authorities: [...(answer.authorities ?? [])],
      },
    }))
  }

  const tcp = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', chunk => {
      for (const { packet } of respond(streamDecode(chunk), 'tcp')) socket.write(streamEncode(packet))
    })
  })
  const { udp, port } = await listenOnBoth(tcp)
  const late = new Set<NodeJS.Timeout>()
  udp.on('message', (message, from) => {
    const query = decode(message)
    sources.push({ port: from.port, id: query.id ?? 0 })
    const send = (packet: Packet) => udp.send(encode(packet), from.port, from.address)
    for (const { packet, afterMs } of respond(query, 'udp'))
      if (afterMs === 0) send(packet)
      else late.add(setTimeout(() => send(packet), afterMs))
  })
  t.teardown(() => {
    for (const timer of late) clearTimeout(timer)
    udp.close()
    tcp.close()
  })
  return {
    address: `127.0.0.1:${port}`,
    asked,
    sources,
    heard: count =>
      asked.length >= count ? Promise.resolve() : new Promise(resolve => waiting.push({ count, resolve })),
  }
}

/** The port that is free for TCP may be taken for UDP; then another one is drawn. */
async function listenOnBoth(tcp: Server): Promise<{ udp: UdpSocket; port: number }> {
  for (;;) {
    await new Promise<void>(resolve => tcp.listen(0, '127.0.0.1', resolve))
    const { port } = tcp.address() as AddressInfo
    const udp = createSocket('udp4')
    const isBound = await new Promise<boolean>(resolve => {
      udp.once('error', () => resolve(false))
      udp.bind(port, '127.0.0.1', () => resolve(true))
    })
    if (isBound) return { udp, port }
    await new Promise(resolve => tcp.close(resolve))
  }
}
