/** SMTP commands: order, replies, parameters, pipelining, errors. */
import t from 'tap'
import { AppError } from '../../src/core/errors.js'
import { SmtpRefusal, type RcptCommand } from '../../src/smtp/receiver.js'
import { KeepingReceiver, SmtpClient, smtpService } from '../support/smtp/smtp-service.js'

t.test('a message is accepted as sent, and the session continues', async t => {
  const { dialogue, receiver } = await smtpService(t)
  await dialogue(`
    C MAIL FROM:<a@x.example> SIZE=100 BODY=8BITMIME
    S 250 2.1.0 ...
    C RCPT TO:<b@y.example>
    S 250 2.1.5 ...
    C DATA
    S 354 ...
    RAW "Subject: x\\r\\n\\r\\n..one dot\\r\\n\\u00e9\\r\\n.\\r\\n"
    S 250 2.0.0 Queued as 1
    MAIL
    C DATA
    S 354 ...
    C .
    S 250 2.0.0 Queued as 2
    C QUIT
    S 221 2.0.0 ...
    END
  `)
  t.match(receiver.messages, [
    {
      mail: { address: 'a@x.example', size: 100, body: '8BITMIME', smtpUtf8: false },
      recipients: [{ address: 'b@y.example' }],
      text: 'Subject: x\r\n\r\n.one dot\r\n\u00e9\r\n',
    },
    { text: '' },
  ])
})

t.test('EHLO lists the available extensions', async t => {
  const { port } = await smtpService(t, {
    limits: { messageSize: 1_234 },
    auth: { isRequired: false, isAllowedInClear: true },
  })
  const client = await SmtpClient.connect(port)
  await client.readLine()
  t.same(await client.ehlo(), [
    '250-mx.example',
    '250-PIPELINING',
    '250-SIZE 1234',
    '250-AUTH PLAIN LOGIN',
    '250-ENHANCEDSTATUSCODES',
    '250-8BITMIME',
    '250-DSN',
    '250-SMTPUTF8',
    '250 CHUNKING',
  ])
  client.cut()
})

t.test('a disabled extension is neither offered nor accepted', async t => {
  const { port, dialogue } = await smtpService(t, {
    capabilities: { dsn: false, smtpUtf8: false, chunking: false },
  })
  const client = await SmtpClient.connect(port)
  await client.readLine()
  t.notMatch((await client.ehlo()).join(), /DSN|SMTPUTF8|CHUNKING|AUTH|STARTTLS/)
  client.cut()
  await dialogue(`
    C MAIL FROM:<a@x.example> RET=FULL
    S 555 5.5.4 ...
    C MAIL FROM:<a@x.example> SMTPUTF8
    S 555 5.5.4 ...
    C BDAT 0 LAST
    S 502 5.5.1 ...
    C AUTH PLAIN AGEAYg==
    S 502 5.5.1 ...
    C STARTTLS
    S 502 5.5.1 ...
  `)
})

t.test('out-of-order commands are rejected and change nothing', async t => {
  const { dialogue, receiver } = await smtpService(t)
  await dialogue(`
    S 220 ...
    C MAIL FROM:<a@x.example>
    S 503 5.5.1 ...
    C HELO client
    S 250 mx.example
    C RCPT TO:<b@y.example>
    S 503 5.5.1 ...
    C DATA
    S 503 5.5.1 ...
    C MAIL FROM:<a@x.example>
    S 250 2.1.0 ...
    C MAIL FROM:<a@x.example>
    S 503 5.5.1 ...
    C DATA
    S 503 5.5.1 ...
    C RSET
    S 250 2.0.0 Ok
    C RCPT TO:<b@y.example>
    S 503 5.5.1 ...
  `)
  t.same(receiver.messages, [])
  t.same(receiver.abandoned, ['a@x.example'])
})

t.test('EHLO during a transaction resets it', async t => {
  const { dialogue, receiver } = await smtpService(t)
  await dialogue(`
    MAIL
    EHLO
    C DATA
    S 503 5.5.1 ...
  `)
  t.same(receiver.abandoned, ['a@x.example'])
})

t.test('every other command has its reply', async t => {
  const { dialogue } = await smtpService(t)
  await dialogue(`
    C NOOP whatever
    S 250 2.0.0 ...
    C VRFY ann
    S 252 2.5.2 ...
    C VRFY
    S 501 5.5.4 ...
    C HELP
    S 214 2.0.0 ...
    C EXPN list
    S 502 5.5.1 ...
    C FROB
    S 500 5.5.2 ...
    C mail from:<a@x.example>
    S 250 2.1.0 ...
    C rCpT tO: <b@y.example>
    S 250 2.1.5 ...
    C RSET now
    S 501 5.5.4 ...
    C DATA now
    S 501 5.5.4 ...
    C QUIT now
    S 501 5.5.4 ...
    C MAIL TO:<a@x.example>
    S 501 5.5.4 ...
    C EHLO
    S 501 5.5.4 ...
  `)
})

t.test('a pipelined group is answered in order and in one write', async t => {
  const { port, receiver } = await smtpService(t)
  const client = await SmtpClient.connect(port)
  await client.readLine()
  await client.ehlo()
  const pieces: string[] = []
  client.socket.on('data', (octets: Buffer) => pieces.push(octets.toString('latin1')))
  client.send('RSET\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nRCPT TO:<@>\r\nDATA\r\n')
  const replies = [await client.readLine(), await client.readLine(), await client.readLine()]
  replies.push(await client.readLine(), await client.readLine())
  t.match(replies, [/^250/, /^250/, /^250/, /^501/, /^354/])
  t.equal(pieces.length, 1)
  client.send('x\r\n.\r\nMAIL FROM:<c@x.example>\r\nRSET\r\nQUIT\r\n')
  t.match(await client.readLine(), /^250 2.0.0 Queued/)
  t.match(await client.readLine(), /^250 2.1.0/)
  t.match(await client.readLine(), /^250 2.0.0/)
  t.match(await client.readLine(), /^221/)
  t.equal(receiver.messages.length, 1)
})

t.test('a pipelined group whose recipients are all rejected transfers no message', async t => {
  class Nobody extends KeepingReceiver {
    override addRecipient(): void {
      throw new SmtpRefusal(550, '5.1.1', 'Nobody here')
    }
  }
  const { dialogue, receiver } = await smtpService(t, { receiver: new Nobody() })
  await dialogue(`
    C MAIL FROM:<a@x.example>
    C RCPT TO:<b@y.example>
    C DATA
    S 250 2.1.0 ...
    S 550 5.1.1 Nobody here
    S 554 5.5.1 ...
  `)
  t.same(receiver.messages, [])
})

t.test(
  'a client that sends data before the 354 is disconnected, since a rejected DATA would turn it into commands',
  async t => {
    const { dialogue, receiver } = await smtpService(t)
    await dialogue(`
    C MAIL FROM:<a@x.example>
    C RCPT TO:<b@y.example>
    C DATA
    C RSET
    S 250 2.1.0 ...
    S 250 2.1.5 ...
    S 554 5.5.0 ...
    END
  `)
    await dialogue(`
    S 220 ...
    C EHLO client.example
    C MAIL FROM:<a@x.example>
    S 554 5.5.0 ...
    END
  `)
    t.same(receiver.messages, [])
  },
)

t.test('an unavailable receiver is not logged again for each message', async t => {
  class Full extends KeepingReceiver {
    override async addRecipient(): Promise<void> {
      throw new AppError('unavailable', 'the disk is full', { cause: new Error('database or disk is full') })
    }
  }
  const { dialogue, log } = await smtpService(t, { receiver: new Full() })
  await dialogue(`
    C MAIL FROM:<a@x.example>
    C RCPT TO:<b@y.example>
    S 250 2.1.0 ...
    S 452 4.3.1 ...
    C QUIT
    S 221 2.0.0 ...
    END
  `)
  t.match(
    log.lines.filter(({ event }) => event.includes('receiver') || event.includes('refused')),
    [{ level: 'info', event: 'mail refused' }],
  )
})

t.test('API errors and internal errors become replies', async t => {
  class Strict extends KeepingReceiver {
    override async addRecipient({ address }: RcptCommand, recipients: RcptCommand[]): Promise<void> {
      if (address.startsWith('app@')) throw new AppError('limit_reached', 'Enough\r\nfor \u00e9 today')
      if (address.startsWith('bug@')) throw new Error('the secret of the database')
      if (address.startsWith('bye@')) throw new SmtpRefusal(421, '4.7.0', 'Go away', true)
      recipients.push({ address })
    }
  }
  const { dialogue, log } = await smtpService(t, { receiver: new Strict() })
  await dialogue(`
    C MAIL FROM:<a@x.example>
    C RCPT TO:<app@y.example>
    C RCPT TO:<bug@y.example>
    C RCPT TO:<ann@y.example>
    C RCPT TO:<bye@y.example>
    C NOOP
    S 250 2.1.0 ...
    S 451 4.7.1 Enough for ? today
    S 451 4.3.0 Internal error...
    S 250 2.1.5 ...
    S 421 4.7.0 Go away
    END
  `)
  const errors = log.lines.filter(({ level }) => level === 'error')
  t.match(errors, [{ level: 'error', event: 'smtp receiver failed' }])
  t.match(
    log.lines.filter(({ event }) => event === 'mail refused'),
    [{ level: 'info', fields: { peer: '127.0.0.1', from: 'a@x.example', to: 'app@y.example' } }],
    'and which recipients were refused',
  )
})

t.test('a receiver can reject at the start and at the end of a message', async t => {
  class Full extends KeepingReceiver {
    override openMessage(): void {
      if (this.messages.length === 0 && this.abandoned.length === 0)
        throw new SmtpRefusal(452, '4.3.1', 'No room')
    }
    override async finish(): Promise<void> {
      throw new AppError('no_content', 'Nothing in it')
    }
  }
  const { dialogue, receiver } = await smtpService(t, { receiver: new Full() })
  await dialogue(`
    MAIL
    C DATA
    S 452 4.3.1 No room
    MAIL
    C DATA
    S 354 ...
    C .
    S 550 5.6.0 Nothing in it
    C NOOP
    S 250 ...
  `)
  t.same(receiver.messages, [])
})

t.test('recipients beyond the limit get 452 and are sent in another message', async t => {
  const { dialogue, receiver } = await smtpService(t, { limits: { recipients: 1 } })
  await dialogue(`
    MAIL
    C RCPT TO:<c@y.example>
    S 452 4.5.3 ...
    C DATA
    S 354 ...
    C .
    S 250 ...
  `)
  t.equal(receiver.messages[0]?.recipients.length, 1)
})

t.test('a rejection by `connect` replaces the greeting', async t => {
  class Closed extends KeepingReceiver {
    async connect(): Promise<string | undefined> {
      throw new SmtpRefusal(554, '5.7.1', 'Not you')
    }
  }
  const { dialogue } = await smtpService(t, { receiver: new Closed() })
  await dialogue(`
    S 554 5.7.1 Not you
    END
  `)
})

t.test('a client that half-closes after QUIT still gets its replies', async t => {
  const { port, receiver } = await smtpService(t)
  const client = await SmtpClient.connect(port)
  await client.readLine()
  await client.ehlo()
  client.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nDATA\r\n')
  for (let replies = 0; replies < 3; replies++) await client.readLine()
  client.socket.end('x\r\n.\r\nQUIT\r\n')
  t.match(await client.readLine(), /^250 2.0.0 Queued/)
  t.match(await client.readLine(), /^221/)
  t.equal(await client.readLine(), undefined)
  t.equal(receiver.messages.length, 1)
})
