/** TLS, AUTH, and hostile or mistaken clients. */
import t from 'tap'
import { SmtpRefusal } from '../../src/smtp/receiver.js'
import { KeepingReceiver, SmtpClient, smtpService } from '../support/smtp/smtp-service.js'
import { until } from '../support/until.js'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const ANN = base64('\0ann\0secret')

t.test('STARTTLS restarts the session under TLS and is offered once', async t => {
  const { port, receiver } = await smtpService(t, {
    hasTls: true,
    auth: { isRequired: true, isAllowedInClear: false },
  })
  const client = await SmtpClient.connect(port)
  await client.readLine()
  const inClear = (await client.ehlo()).join()
  t.match(inClear, /STARTTLS/)
  t.notMatch(inClear, /AUTH/)
  client.send('STARTTLS\r\n')
  t.match(await client.readLine(), /^220 2\.0\.0 /)
  await client.startTls()
  client.send('MAIL FROM:<a@x.example>\r\n')
  t.match(await client.readLine(), /^503 /, 'the name said in clear is forgotten')
  const secure = (await client.ehlo()).join()
  t.match(secure, /AUTH PLAIN LOGIN/)
  t.notMatch(secure, /STARTTLS/)
  client.send(`STARTTLS\r\nAUTH PLAIN ${ANN}\r\n`)
  t.match(await client.readLine(), /^503 5\.5\.1 /)
  t.match(await client.readLine(), /^235 2\.7\.0 /)
  t.notMatch((await client.ehlo()).join(), /AUTH/, 'who is logged in needs no offer')
  client.send('MAIL FROM:<a@x.example>\r\nRCPT TO:<b@y.example>\r\nBDAT 3 LAST\r\nx\r\n')
  for (let replies = 0; replies < 3; replies++) t.match(await client.readLine(), /^250 /)
  t.match(receiver.messages, [{ identity: 'ann', text: 'x\r\n' }])
  client.cut()
})

t.test('implicit TLS starts with the first octet', async t => {
  const { dialogue, receiver } = await smtpService(t, {
    isImplicitTls: true,
    auth: { isRequired: true, isAllowedInClear: false },
  })
  await dialogue(`
    C AUTH PLAIN ${ANN}
    S 235 ...
    MAIL
    C DATA
    S 354 ...
    C .
    S 250 ...
  `)
  t.match(receiver.messages, [{ identity: 'ann' }])
})

t.test('what is pipelined behind STARTTLS is never read', async t => {
  const { dialogue, receiver, log } = await smtpService(t, { hasTls: true })
  await dialogue(`
    C STARTTLS
    C MAIL FROM:<evil@x.example>
    C RCPT TO:<b@y.example>
    S 554 5.5.0 ...
    END
  `)
  await dialogue(`
    RAW "EHLO x\\r\\n"
    S 220 ...
    S 250-...
    S 250-...
    S 250-...
    S 250-STARTTLS
    S 250-...
    S 250-...
    S 250-...
    S 250-...
    S 250 ...
    RAW "STARTTLS\\r\\nN"
    S 554 5.5.0 ...
    END
  `)
  t.match(
    log.lines.filter(({ level }) => level === 'warn'),
    [
      { event: 'smtp commands injected behind STARTTLS' },
      { event: 'smtp commands injected behind STARTTLS' },
    ],
  )
  t.same(receiver.abandoned, [])
})

t.test('a client that does not start TLS after STARTTLS is disconnected', async t => {
  const { dialogue } = await smtpService(t, { hasTls: true })
  await dialogue(`
    C STARTTLS
    S 220 ...
    C MAIL FROM:<evil@x.example>
    END
  `)
})

t.test('a plaintext login is rejected before the password is requested', async t => {
  const { dialogue } = await smtpService(t, {
    hasTls: true,
    auth: { isRequired: true, isAllowedInClear: false },
  })
  await dialogue(`
    C AUTH LOGIN
    S 538 5.7.11 ...
    C MAIL FROM:<a@x.example>
    S 530 5.7.0 ...STARTTLS...
  `)
})

t.test('AUTH PLAIN and LOGIN succeed and fail as specified', async t => {
  const auth = { isRequired: true, isAllowedInClear: true }
  const { dialogue, log } = await smtpService(t, { auth, limits: { errors: 100 } })
  await dialogue(`
    C MAIL FROM:<a@x.example>
    S 530 5.7.0 Authentication required
    C AUTH
    S 501 5.5.4 ...
    C AUTH CRAM-MD5
    S 504 5.5.4 ...
    C AUTH PLAIN ${base64('\0ann\0wrong')}
    S 535 5.7.8 Wrong name or key
    C AUTH PLAIN ${base64('bob\0ann\0secret')}
    S 535 5.7.8 ...
    C AUTH PLAIN ${base64('ann\0secret')}
    S 501 5.5.2 ...
    C AUTH PLAIN not*base64
    S 501 5.5.2 ...
    C AUTH PLAIN ${ANN} more
    S 501 5.5.2 ...
    C AUTH PLAIN =
    S 501 5.5.2 ...
    C AUTH PLAIN
    S 334...
    C *
    S 501 5.7.0 ...
    C AUTH LOGIN
    S 334 VXNlcm5hbWU6
    C !!!
    S 501 5.5.2 ...
    C AUTH LOGIN ${base64('ann')}
    S 334 UGFzc3dvcmQ6
    C ${'A'.repeat(12_400)}
    S 500 5.5.6 ...
    C NOOP
    S 250 ...
    C AUTH LOGIN
    S 334 VXNlcm5hbWU6
    C ${base64('ann')}
    S 334 UGFzc3dvcmQ6
    C ${base64('secret')}
    S 235 2.7.0 ...
    C AUTH PLAIN ${ANN}
    S 503 5.5.1 ...
  `)
  await dialogue(`
    C auth plain
    S 334...
    C ${ANN}
    S 235 ...
    C MAIL FROM:<a@x.example>
    S 250 ...
  `)
  t.notMatch(JSON.stringify(log.lines), /secret|wrong|c2VjcmV0/)
})

t.test('AUTH is rejected within a transaction and before EHLO', async t => {
  const { dialogue } = await smtpService(t, { auth: { isRequired: false, isAllowedInClear: true } })
  await dialogue(`
    S 220 ...
    C HELO x
    S 250 ...
    C AUTH PLAIN ${ANN}
    S 503 ...
    EHLO
    MAIL
    C AUTH PLAIN ${ANN}
    S 503 ...
  `)
})

t.test('a client that guesses passwords is disconnected', async t => {
  const { dialogue } = await smtpService(t, {
    auth: { isRequired: true, isAllowedInClear: true },
    limits: { errors: 2 },
  })
  await dialogue(`
    C AUTH PLAIN ${base64('\0ann\0one')}
    S 535 ...
    C AUTH PLAIN ${base64('\0ann\0two')}
    S 535 ...
    S 421 4.7.0 ...
    END
  `)
})

t.test('a trusted network needs no login, not even after STARTTLS', async t => {
  class Trusting extends KeepingReceiver {
    connect(): string {
      return 'printer'
    }
  }
  const { dialogue, receiver } = await smtpService(t, {
    receiver: new Trusting(),
    hasTls: true,
    auth: { isRequired: true, isAllowedInClear: false },
  })
  await dialogue(`
    MAIL
    C BDAT 0 LAST
    S 250 ...
    C STARTTLS
    S 220 ...
    TLS
    EHLO
    MAIL
    C BDAT 0 LAST
    S 250 ...
  `)
  t.match(receiver.messages, [{ identity: 'printer' }, { identity: 'printer' }])
})

t.test('a browser is disconnected at its first line', async t => {
  const { dialogue, log } = await smtpService(t)
  for (const line of ['GET / HTTP/1.1', 'POST /x HTTP/1.1', 'CONNECT mx:25 HTTP/1.1', 'Host: mx.example'])
    await dialogue(`
      RAW ${JSON.stringify(`${line}\r\nEHLO x\r\nMAIL FROM:<a@x.example>\r\n`)}
      S 220 ...
      S 554 5.5.0 ...
      END
    `)
  t.match(log.lines[0], { level: 'warn', event: 'smtp client speaks HTTP' })
})

t.test('a command line ends in CRLF and contains no control characters', async t => {
  const { dialogue } = await smtpService(t)
  await dialogue(`
    RAW "NOOP\\n"
    S 220 ...
    S 500 5.5.2 ...
    RAW "NOOP\\rNOOP\\r\\n"
    S 500 5.5.2 ...
    RAW "NO\\u0000OP\\r\\n"
    S 500 5.5.2 ...
    RAW "NOOP\\t\\r\\n"
    S 500 5.5.2 ...
    RAW "\\r\\n"
    S 500 5.5.2 ...
    C NOOP
    S 250 ...
  `)
})

t.test('an overlong line is an error; an endless one closes the session', async t => {
  const { dialogue } = await smtpService(t)
  await dialogue(`
    C NOOP ${'x'.repeat(3_000)}
    C NOOP
    S 500 5.5.6 ...
    S 250 ...
    RAW ${JSON.stringify('x'.repeat(100_000))}
    C NOOP
    S 500 5.5.6 ...
    RAW ${JSON.stringify('x'.repeat(400_000))}
    S 500 5.5.6 ...
    END
  `)
})

t.test('errors and useless commands are counted', async t => {
  const { dialogue } = await smtpService(t, { limits: { errors: 3 } })
  await dialogue(`
    C FROB
    C FROB
    C FROB
    C NOOP
    S 500 ...
    S 500 ...
    S 500 ...
    S 421 4.7.0 ...
    END
  `)
  const { port } = await smtpService(t, { limits: { errors: 3 } })
  const client = await SmtpClient.connect(port)
  client.send('NOOP\r\n'.repeat(100_000))
  let replies = 0
  let last: string | undefined
  for (let line = await client.readLine(); line !== undefined; line = await client.readLine()) {
    replies += 1
    last = line
  }
  t.match(last, /^421 4\.7\.0 /)
  t.ok(replies < 120)
})

t.test('nothing is read from a client that does not read its replies', async t => {
  const { port } = await smtpService(t, { limits: { errors: 10_000_000 } })
  const client = await SmtpClient.connect(port)
  await client.readLine()
  // More in either direction than the system itself would hold for us.
  const wanted = 300_000
  const commands = `HELP ${'x'.repeat(100)}\r\n`.repeat(wanted)
  const everyReply = async ({ socket }: SmtpClient) => {
    let replies = 0
    socket.on('data', (octets: Buffer) => {
      for (const octet of octets) if (octet === 10) replies += 1
    })
    socket.resume()
    await until('every reply', () => replies === wanted)
  }
  client.socket.removeAllListeners('data').pause()
  client.send(commands)
  // Another client is served all that it asks for meanwhile, as this one would have been.
  const other = await SmtpClient.connect(port)
  await other.readLine()
  other.socket.removeAllListeners('data')
  other.send(commands)
  await everyReply(other)
  t.ok(client.socket.writableLength > 100_000, 'commands wait at the client')
  await everyReply(client)
  for (const one of [client, other]) one.cut()
})

t.test('a client that harvests recipients is disconnected', async t => {
  class Nobody extends KeepingReceiver {
    override addRecipient(): void {
      throw new SmtpRefusal(550, '5.1.1', 'Nobody here')
    }
  }
  const { dialogue } = await smtpService(t, { receiver: new Nobody(), limits: { refusals: 2 } })
  await dialogue(`
    C MAIL FROM:<a@x.example>
    C RCPT TO:<a@y.example>
    C RCPT TO:<b@y.example>
    C RCPT TO:<c@y.example>
    S 250 ...
    S 550 ...
    S 550 ...
    S 421 4.7.0 ...
    END
  `)
})

t.test('452 for excess recipients does not count as harvesting', async t => {
  class Full extends KeepingReceiver {
    override addRecipient(): void {
      throw new SmtpRefusal(452, '4.5.3', 'Not so many at once')
    }
  }
  const { dialogue } = await smtpService(t, { receiver: new Full(), limits: { refusals: 2 } })
  await dialogue(`
    C MAIL FROM:<a@x.example>
    C RCPT TO:<a@y.example>
    C RCPT TO:<b@y.example>
    C RCPT TO:<c@y.example>
    C NOOP
    S 250 ...
    S 452 4.5.3 ...
    S 452 4.5.3 ...
    S 452 4.5.3 ...
    S 250 ...
  `)
})
