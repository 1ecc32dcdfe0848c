/**
 * The receiving side of a proof: an SMTP server that notes which recipient got which mail when, and keeps no texts.
 *
 * Some recipients are deferred at first and some do not exist; both follow from the address alone, so that every run with the same seed has
 * the same. A mail counts as arrived when its 250 is written.
 */
import { createHash } from 'node:crypto'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Scope } from '../support/scope.js'

export interface Arrival {
  /** ms since epoch. */
  readonly at: number
  readonly messageId: string
}

export interface Mailbox {
  readonly port: number
  /** By recipient, in order. */
  readonly arrivals: ReadonlyMap<string, readonly Arrival[]>
  readonly arrived: number
  /** Recipients that were deferred so far. */
  readonly deferred: number
  /** While true, connections that come to DATA are not read any more, and never again. */
  stallsInData: boolean
  /** How many did. */
  readonly stalled: number
  /** Called with each mail as it came. */
  onMail: ((text: string, recipient: string) => void) | undefined
}

export interface MailboxOptions {
  readonly seed: number
  /** Share of recipients that are deferred at their first offer. */
  readonly deferredShare: number
}

/** Recipients of this form do not exist. */
export const UNKNOWN = /^unknown/

export async function openMailbox(t: Scope, { seed, deferredShare }: MailboxOptions): Promise<Mailbox> {
  const arrivals = new Map<string, Arrival[]>()
  const offered = new Set<string>()
  const sockets = new Set<Socket>()
  let [arrived, deferred, stalled] = [0, 0, 0]
  const isDeferred = (recipient: string) => {
    if (offered.has(recipient)) return false
    offered.add(recipient)
    if (fraction(`${seed} ${recipient}`) >= deferredShare) return false
    deferred += 1
    return true
  }
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    receive(socket, {
      replyTo(recipient) {
        if (UNKNOWN.test(recipient)) return '550 5.1.1 No such user here'
        return isDeferred(recipient) ? '450 4.2.0 Recipient address rejected: Greylisted' : '250 2.1.5 Ok'
      },
      stalls() {
        if (mailbox.stallsInData) stalled += 1
        return mailbox.stallsInData
      },
      take(recipient, text) {
        const messageId = /^message-id:\s*(<[^>]*>)/im.exec(text.slice(0, HEADER_OCTETS))?.[1] ?? ''
        const known = arrivals.get(recipient)
        const arrival = { at: Date.now(), messageId }
        if (known) known.push(arrival)
        else arrivals.set(recipient, [arrival])
        arrived += 1
        mailbox.onMail?.(text, recipient)
      },
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const mailbox: Mailbox = {
    port: (server.address() as AddressInfo).port,
    arrivals,
    get arrived() {
      return arrived
    },
    get deferred() {
      return deferred
    },
    stallsInData: false,
    get stalled() {
      return stalled
    },
    onMail: undefined,
  }
  return mailbox
}

const HEADER_OCTETS = 16_384

interface Decisions {
  readonly replyTo: (recipient: string) => string
  /** Asked at DATA. */
  readonly stalls: () => boolean
  readonly take: (recipient: string, text: string) => void
}

/** One session (RFC 5321, PIPELINING). */
function receive(socket: Socket, { replyTo, stalls, take }: Decisions): void {
  let unread = ''
  let isMessage = false
  let recipients: string[] = []
  socket.setNoDelay(true).setEncoding('latin1')
  // A killed client resets its connections.
  socket.on('error', () => socket.destroy())
  socket.write('220 mailbox.test ESMTP\r\n')
  const answer = (line: string): string => {
    const verb = line.slice(0, 4).toUpperCase()
    switch (verb) {
      case 'EHLO':
        return '250-mailbox.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES'
      case 'MAIL':
      case 'RSET':
        recipients = []
        return '250 2.1.0 Ok'
      case 'RCPT': {
        const recipient = /<(.*?)>/.exec(line)?.[1] ?? ''
        const reply = replyTo(recipient)
        if (reply.startsWith('250')) recipients.push(recipient)
        return reply
      }
      case 'DATA':
        if (recipients.length === 0) return '554 5.5.1 No valid recipients'
        isMessage = true
        if (stalls()) socket.pause()
        return '354 End data with <CR><LF>.<CR><LF>'
      case 'QUIT':
        return '221 2.0.0 Bye'
      default:
        return '250 2.0.0 Ok'
    }
  }
  socket.on('data', (octets: string) => {
    unread += octets
    let replies = ''
    for (;;) {
      const mark = isMessage ? '\r\n.\r\n' : '\r\n'
      const end = unread.indexOf(mark)
      if (end < 0) break
      const text = unread.slice(0, end)
      unread = unread.slice(end + mark.length)
      if (isMessage) {
        isMessage = false
        for (const recipient of recipients) take(recipient, text)
        recipients = []
        replies += '250 2.0.0 Ok: taken\r\n'
      } else replies += `${answer(text)}\r\n`
    }
    if (replies !== '') socket.write(replies)
    if (replies.startsWith('221')) socket.end()
  })
}

/** In [0, 1), of the text alone. */
export function fraction(text: string): number {
  return createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32
}
