/**
 * A program of its own: an SMTP server that takes every message and keeps none, for machines without smtp-sink.
 *
 * Started by `sinks.ts`; argument: the port on loopback. Answers each command line with what lets the client go on and
 * looks at the octets of a message for nothing but its end.
 */
import { createServer, type Socket } from 'node:net'

const EXTENSIONS = '250-sink.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 ENHANCEDSTATUSCODES\r\n'
const END = Buffer.from('\r\n.\r\n')

createServer(serve).listen(Number(process.argv[2]), '127.0.0.1')

function serve(socket: Socket): void {
  let unread = Buffer.alloc(0)
  let isMessage = false
  socket.setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.write('220 sink.example ESMTP\r\n')
  socket.on('data', (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk])
    let answers = ''
    for (;;) {
      const mark = isMessage ? END : '\r\n'
      const end = unread.indexOf(mark)
      if (end < 0) break
      const line = isMessage ? '' : unread.toString('latin1', 0, end).toUpperCase()
      unread = unread.subarray(end + mark.length)
      answers += isMessage ? '250 2.0.0 taken\r\n' : answerTo(line)
      isMessage = line === 'DATA'
      if (line === 'QUIT') socket.end(answers)
    }
    // Of a message only what may be the beginning of its end has to be kept.
    if (isMessage) unread = unread.subarray(-END.length)
    if (answers !== '' && socket.writable) socket.write(answers)
  })
}

function answerTo(line: string): string {
  if (line.startsWith('EHLO')) return EXTENSIONS
  if (line === 'DATA') return '354 go on\r\n'
  if (line === 'QUIT') return '221 2.0.0 bye\r\n'
  return '250 2.0.0 ok\r\n'
}
