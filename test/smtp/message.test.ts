/** Message data: its end, line endings and limits, with DATA and BDAT. */
import t from 'tap'
import { MessageScanner, type ScanLimits } from '../../src/smtp/message-scanner.js'
import { SmtpRefusal } from '../../src/smtp/receiver.js'
import { KeepingReceiver, SmtpClient, smtpService } from '../support/smtp/smtp-service.js'
import { until } from '../support/until.js'

const LIMITS: ScanLimits = { messageSize: 1_000_000, textLine: 65_536, header: 262_144 }

/** What comes out, whatever the pieces are in which it comes in. */
function scanned(text: string, cuts: readonly number[], limits: ScanLimits = LIMITS) {
  const scanner = new MessageScanner(limits, true)
  const kept: string[] = []
  const edges = [0, ...cuts, text.length]
  let rest = ''
  for (const [index, from] of edges.slice(0, -1).entries()) {
    const piece = Buffer.from(text.slice(from, edges[index + 1]), 'latin1')
    if (scanner.isComplete) {
      rest += piece.toString('latin1')
      continue
    }
    const end = scanner.scan(piece, 0)
    kept.push(piece.toString('latin1', scanner.keptFrom, scanner.keptTo))
    rest += piece.toString('latin1', end)
  }
  return { text: kept.join(''), rest, isComplete: scanner.isComplete, fault: scanner.fault }
}

/** Whole, octet by octet, and cut once at each place. */
function* everyCut(text: string): Iterable<readonly number[]> {
  yield []
  yield Array.from({ length: text.length - 1 }, (_, at) => at + 1)
  for (let at = 1; at < text.length; at++) yield [at]
}

t.test('dots are unstuffed and the end is found however the octets are split', async t => {
  const cases: readonly (readonly [text: string, message: string])[] = [
    ['.\r\n', ''],
    ['a\r\n.\r\n', 'a\r\n'],
    ['\r\n.\r\n', '\r\n'],
    ['..\r\n.\r\n', '.\r\n'],
    ['..a\r\n...\r\nb.\r\n.c\r\n\r\n..\r\n.\r\n', '.a\r\n..\r\nb.\r\nc\r\n\r\n.\r\n'],
  ]
  for (const [text, message] of cases)
    for (const cuts of everyCut(`${text}QUIT\r\n`))
      t.match(scanned(`${text}QUIT\r\n`, cuts), {
        text: message,
        rest: 'QUIT\r\n',
        isComplete: true,
        fault: undefined,
      })
})

/** What other servers have taken, or might take, for the end of a message. */
const SMUGGLED = [
  '\n.\n',
  '\n.\r\n',
  '\r\n.\n',
  '\r.\r',
  '\r.\r\n',
  '\r\n.\r',
  '\r\n.\r\r\n',
  '\r\r\n.\r\r\n',
  '\n\r.\r\n',
  '\r\n\n.\r\n',
  '\n\n.\r\n',
  '\r\n.\0\r\n',
  '\r\n\0.\r\n',
  '\0\r\n.\0\r\n',
  '\r\0\n.\r\0\n',
  '\n\0.\n',
]

t.test('only CRLF.CRLF ends a message, and lookalikes are errors', async t => {
  const hidden = 'MAIL FROM:<evil@x.example>\r\nhidden\r\n'
  for (const end of SMUGGLED) {
    const text = `line${end}${hidden}.\r\nNOOP\r\n`
    for (const cuts of everyCut(text)) {
      const { isComplete, rest, fault } = scanned(text, cuts)
      // Some of these hold the real end as well (LF . CR LF after CR LF); then too the message has its fault.
      t.ok(isComplete && fault !== undefined, JSON.stringify(end))
      t.equal(rest, 'NOOP\r\n', `${JSON.stringify(end)} cut at ${cuts.join()}`)
    }
  }
})

t.test('a smuggled message is rejected with the one that contains it', async t => {
  const { dialogue, receiver } = await smtpService(t, { limits: { errors: 1_000, refusals: 1_000 } })
  for (const end of SMUGGLED)
    await dialogue(`
      MAIL
      C DATA
      S 354 ...
      RAW ${JSON.stringify(`line${end}MAIL FROM:<evil@x.example>\r\nRCPT TO:<b@y.example>\r\nDATA\r\nx\r\n.\r\n`)}
      S 550 5.6.0 ...
      C NOOP
      S 250 ...
    `)
  t.same(receiver.messages, [])
})

t.test('lines may be long, but not endless', async t => {
  const { dialogue, receiver } = await smtpService(t, { limits: { textLine: 5_000 } })
  await dialogue(`
    MAIL
    C DATA
    S 354 ...
    C ${'x'.repeat(4_998)}
    C .
    S 250 ...
    MAIL
    C DATA
    S 354 ...
    C ${'x'.repeat(4_999)}
    C .
    S 550 5.6.0 Message contains a line of more than 5000 octets
  `)
  t.equal(receiver.messages.length, 1)
})

t.test('a header has a separate limit', async t => {
  const limits = { ...LIMITS, header: 100 }
  const long = 'x'.repeat(90)
  t.equal(scanned(`A: ${long}\r\n\r\n${long}\r\n.\r\n`, [], limits).fault, undefined)
  t.equal(scanned(`A: ${long}\r\nB: ${long}\r\n\r\n.\r\n`, [], limits).fault, 'header-size')
})

t.test('a message over the size limit is rejected at its end and no longer stored', async t => {
  const { dialogue, receiver } = await smtpService(t, { limits: { messageSize: 10_000 } })
  await dialogue(`
    MAIL
    C DATA
    S 354 ...
    RAW ${JSON.stringify(`${'x'.repeat(98)}\r\n`.repeat(5_000))}
    C .
    S 552 5.3.4 ...
    MAIL
    C DATA
    S 354 ...
    C fits
    C .
    S 250 ...
  `)
  t.equal(receiver.messages.length, 1)
  t.same(receiver.abandoned, ['a@x.example'])
  t.ok(receiver.written < 100_000, 'the receiver was spared the rest')
})

t.test('an endless message is cut off', async t => {
  const { port } = await smtpService(t, { limits: { messageSize: 10_000 } })
  const client = await SmtpClient.connect(port)
  await client.readLine()
  await client.ehlo()
  client.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nDATA\r\n')
  for (let replies = 0; replies < 3; replies++) await client.readLine()
  const block = `${'x'.repeat(998)}\r\n`.repeat(1_000)
  let sent = 0
  while (client.socket.writable && sent < 100_000_000) {
    sent += block.length
    await new Promise<void>(resolve => {
      client.socket.write(block, () => resolve())
    })
  }
  t.ok(sent < 40_000_000, 'the server closed')
  t.match(await client.readLine(), /^552 5\.3\.4 /)
})

t.test('a rejection in mid-message is sent at the final dot', async t => {
  class Picky extends KeepingReceiver {
    override async write(piece: Buffer): Promise<void> {
      if (piece.includes('virus')) throw new SmtpRefusal(554, '5.7.1', 'No viruses')
    }
  }
  const { dialogue, receiver } = await smtpService(t, { receiver: new Picky() })
  await dialogue(`
    MAIL
    C DATA
    S 354 ...
    C virus
    C .
    S 554 5.7.1 No viruses
    MAIL
    C BDAT 7
    RAW "virus\\r\\n"
    S 554 5.7.1 No viruses
    C BDAT 3 LAST
    RAW "x\\r\\n"
    S 503 5.5.1 ...
    C NOOP
    S 250 ...
  `)
  t.same(receiver.messages, [])
  t.equal(receiver.abandoned.length, 2)
})

t.test('BDAT accepts a message in counted chunks, dots unchanged', async t => {
  const { dialogue, receiver } = await smtpService(t)
  await dialogue(`
    C MAIL FROM:<a@x.example>
    C RCPT TO:<b@y.example>
    C BDAT 8
    RAW "A: b\\r\\n\\r\\n"
    C BDAT 9
    RAW ".\\r\\n..x\\r\\n\\r"
    C BDAT 7 LAST
    RAW "\\nQUIT\\r\\n"
    C NOOP
    S 250 2.1.0 ...
    S 250 2.1.5 ...
    S 250 2.0.0 ...
    S 250 2.0.0 ...
    S 250 2.0.0 Queued as 1
    S 250 2.0.0 ...
    MAIL
    C BDAT 4
    RAW "open"
    S 250 ...
    C BDAT 0 LAST
    S 250 2.0.0 Queued as 2
  `)
  t.same(
    receiver.messages.map(({ text }) => text),
    ['A: b\r\n\r\n.\r\n..x\r\n\r\nQUIT\r\n', 'open\r\n'],
  )
})

t.test('BDAT follows the rules of DATA', async t => {
  const { dialogue, receiver } = await smtpService(t, { limits: { messageSize: 1_000 } })
  await dialogue(`
    C BDAT 6
    RAW "QUIT\\r\\n"
    S 503 5.5.1 ...
    MAIL
    C BDAT 4 LAST
    RAW "a\\nb\\r"
    S 550 5.6.0 ...
    MAIL
    C BDAT 2 LAST
    RAW "a\\r"
    S 550 5.6.0 ...
    MAIL
    C BDAT 3 LAST
    RAW "a\\u0000b"
    S 550 5.6.0 ...
    MAIL
    C BDAT 1001 LAST
    RAW ${JSON.stringify('x'.repeat(1_001))}
    S 552 5.3.4 ...
    MAIL
    C BDAT 1
    RAW "x"
    S 250 ...
    C DATA
    S 503 5.5.1 ...
    C RCPT TO:<c@y.example>
    S 503 5.5.1 ...
    C RSET
    S 250 ...
    C BDAT many
    S 501 5.5.4 ...
    END
  `)
  t.same(receiver.messages, [])
})

t.test('a connection lost in the middle of a message abandons it', async t => {
  const { dialogue, receiver } = await smtpService(t)
  await dialogue(`
    MAIL
    C DATA
    S 354 ...
    C half of it
    CUT
  `)
  await until('the message to be abandoned', () => receiver.abandoned.length === 1)
  t.same(receiver.messages, [])
})

t.test('reading stops while the receiver is busy', async t => {
  let release: () => void = () => {}
  class Slow extends KeepingReceiver {
    override write(): Promise<void> {
      return new Promise(resolve => {
        release = resolve
      })
    }
  }
  const { port, receiver } = await smtpService(t, { receiver: new Slow() })
  const client = await SmtpClient.connect(port)
  await client.readLine()
  await client.ehlo()
  client.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nDATA\r\n')
  for (let replies = 0; replies < 3; replies++) await client.readLine()
  client.send(`\r\n${`${'x'.repeat(998)}\r\n`.repeat(40_000)}`)
  client.send('.\r\n')
  await until('the first piece', () => receiver.written > 0)
  // Another session is served from beginning to end meanwhile: what could be read has been.
  const other = await SmtpClient.connect(port)
  await other.readLine()
  await other.ehlo()
  other.send('QUIT\r\n')
  t.match(await other.readLine(), /^221 /)
  t.ok(receiver.written <= 65_536, 'one piece is in memory')
  t.ok(client.socket.writableLength > 1_000_000, 'the rest waits at the sender')
  const releasing = setInterval(() => release(), 0)
  t.match(await client.readLine(), /^250 2.0.0 Queued/)
  clearInterval(releasing)
  t.equal(receiver.messages[0]?.text.length, 40_000_002)
})
