/** A foreign client of name servers: questions made and answers read by dns-packet, over UDP or TCP. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { decode, encode, type DecodedPacket, type Packet } from 'dns-packet'

export interface Asked {
  readonly name: string
  readonly type?: string
  readonly class?: string
  readonly transport?: 'udp' | 'tcp'
  /** Octets of UDP that are taken; absent: no EDNS. */
  readonly payload?: number
  readonly ednsVersion?: number
}

/** Types of records by their number, which dns-packet takes as `UNKNOWN_n`. */
export function questionOf({
  name,
  type = 'TXT',
  class: klass = 'IN',
  payload,
  ednsVersion = 0,
}: Asked): Packet {
  return {
    type: 'query',
    id: 4_711,
    flags: 0x0100,
    questions: [{ type: type as 'TXT', name, class: klass as 'IN' }],
    additionals:
      payload === undefined
        ? []
        : [
            {
              type: 'OPT',
              name: '.',
              udpPayloadSize: payload,
              extendedRcode: 0,
              ednsVersion,
              flags: 0,
              flag_do: false,
              options: [],
            },
          ],
  }
}

export type ReadAnswer = DecodedPacket & { readonly rcode: string; readonly octets: number }

export async function ask(port: number, asked: Asked): Promise<ReadAnswer> {
  const message = await exchange(port, encode(questionOf(asked)), asked.transport ?? 'udp')
  return { ...(decode(message) as ReadAnswer), octets: message.length }
}

export async function exchange(port: number, message: Buffer, transport: 'udp' | 'tcp'): Promise<Buffer> {
  if (transport === 'udp') {
    const socket = createSocket('udp4')
    socket.send(message, port, '127.0.0.1')
    const [answer] = (await once(socket, 'message')) as [Buffer]
    socket.close()
    return answer
  }
  const socket = connect(port, '127.0.0.1')
  socket.write(Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]))
  let received = Buffer.alloc(0)
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    received = Buffer.concat([received, chunk])
    if (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) break
  }
  return received.subarray(2)
}

export function valuesOf({ answers = [] }: DecodedPacket): string[] {
  return answers.flatMap(one => (one.type === 'TXT' ? [Buffer.concat(one.data as Buffer[]).toString()] : []))
}
