/** The submission port among people who mean harm: smuggled mail, injected commands, floods, guesses, idle crowds. */
import t from 'tap'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { idsOf, letter, openSubmissionTest, type SubmissionTest } from '../../support/smtp/submission.js'

const SMUGGLED =
  'MAIL FROM:<evil@three.test>\r\nRCPT TO:<victim@three.test>\r\nDATA\r\nFrom: evil@three.test\r\n\r\nx\r\n.\r\n'

t.test('a message ends at CR LF . CR LF and nowhere else, so that no second one hides in it', async t => {
  const { postroad, loggedIn, caught } = await openSubmissionTest(t)
  const ends = ['\n', '\r', '\r\n', '\r\r\n', '\n\r', '\r\n\0', '\0\r\n']
  for (const before of ends)
    for (const after of ends) {
      if (`${before}.${after}`.includes('\r\n.\r\n')) continue
      const client = await loggedIn()
      t.match(await client.begin(), /^354 /)
      client.raw(`${letter()}x${before}.${after}${SMUGGLED}`)
      const label = JSON.stringify(`${before}.${after}`)
      t.match(await client.reply(), /^550 5\.6\.0 /, label)
      t.match(await client.say('NOOP'), /^250 2\.0\.0 Ok$/, 'that was the only reply')
      client.cut()
    }
  t.equal(postroad.rowCounts()['messages'], 0)
  const client = await loggedIn()
  const [id = ''] = idsOf(await client.submit(letter().replace('Hello.', `.\r\n${SMUGGLED}`)))
  t.match((await caught(id)).body, `.\r\n${SMUGGLED}`, 'stuffed, it is text')
})

t.test('a CR or LF alone is refused in the header too', async t => {
  const { postroad, loggedIn } = await openSubmissionTest(t)
  const client = await loggedIn()
  for (const end of ['\n', '\r'])
    for (const place of ['Subject: Hello', 'From: App'])
      t.match(
        await client.submit(letter().replace(place, `${place}${end}Bcc: victim@three.test`)),
        /^550 5\.6\.0 .*CR or LF/,
      )
  t.equal(postroad.rowCounts()['messages'], 0)
})

t.test('nothing that is said before TLS counts after it', async t => {
  const { postroad, open } = await openSubmissionTest(t)
  const login = `AUTH PLAIN ${Buffer.from(`\0apikey\0${postroad.key}`).toString('base64')}`
  for (const injected of [`${login}\r\n`, 'EHLO evil\r\n', SMUGGLED, 'x', '\r\n']) {
    const client = await open('clear')
    client.raw(`STARTTLS\r\n${injected}`)
    t.match(await client.reply(), /^554 5\.5\.0 Data received before the TLS handshake/)
    t.equal(await client.reply(), '', 'the server closes')
  }
  t.ok(postroad.log.lines.some(({ event }) => event === 'smtp commands injected behind STARTTLS'))
})

t.test('commands without end lead to the end of the session, and nobody else notices', async t => {
  const { loggedIn, open } = await openSubmissionTest(t)
  const bystander = await loggedIn()
  for (const flood of [
    'NOOP\r\n'.repeat(20_000),
    'RSET\r\n'.repeat(20_000),
    'EHLO x\r\n'.repeat(5_000),
    'FROB\r\n'.repeat(1_000),
    `${'x'.repeat(5_000)}\r\n`.repeat(100),
    'x'.repeat(2_000_000),
    'MAIL FROM:<a@b.test>\r\n'.repeat(1_000),
    'AUTH PLAIN AGEAYg==\r\n'.repeat(100),
    'AUTH LOGIN\r\n*\r\n'.repeat(100),
  ]) {
    const client = await open()
    client.raw(flood)
    let last = ''
    for (let reply = await client.reply(); reply !== ''; reply = await client.reply()) last = reply
    t.match(last, /^(421 4\.7\.0|500 5\.5\.6|554 5\.5\.0) /, JSON.stringify(flood.slice(0, 20)))
  }
  t.match(await bystander.submit(letter()), /^250 /)
})

t.test('who tries addresses until one is taken is sent away', async t => {
  const { loggedIn } = await openSubmissionTest(t)
  const client = await loggedIn()
  await client.say('MAIL FROM:<app@sender.test>')
  client.raw('RCPT TO:<nobody@localhost>\r\n'.repeat(1_000))
  const replies: string[] = []
  for (let reply = await client.reply(); reply !== ''; reply = await client.reply()) replies.push(reply)
  t.match(replies[0], /^553 5\.1\.3 /)
  t.match(replies.at(-1), /^421 4\.7\.0 /)
  t.ok(replies.length <= 201)
})

t.test('of a thousand guesses at a key few are looked at, and none opens the door', async t => {
  const { postroad, open, addDomain } = await openSubmissionTest(t)
  await addDomain()
  const said = new Map<string, number>()
  const guessers = Array.from({ length: 50 }, async (_, guesser) => {
    for (let guess = 0; guess < 20;) {
      const client = await open('implicit TLS', '127.0.0.9')
      for (let reply = ''; guess < 20 && !reply.startsWith('421'); guess++) {
        reply = await client.login(`${postroad.key.slice(0, 14)}${guesser}x${guess}`)
        const code = reply.slice(0, 3)
        said.set(code, (said.get(code) ?? 0) + 1)
      }
      client.cut()
    }
  })
  await Promise.all(guessers)
  t.same([...said.keys()].sort(), ['454', '535'])
  t.ok(
    (said.get('535') ?? 0) <= 10 + guessers.length,
    'the failures that are allowed, and what was under way',
  )
  const locked = await open('implicit TLS', '127.0.0.9')
  t.match(await locked.login(postroad.key), /^454 4\.7\.0 /)
  const customer = await open()
  t.match(await customer.login(postroad.key), /^235 /)
  t.match(await customer.submit(letter()), /^250 /)
})

/** Connections that only wait; resolves with their first lines. */
async function idle(
  { postroad }: SubmissionTest,
  count: number,
): Promise<{ sockets: Socket[]; lines: string[] }> {
  const port = postroad.addresses.submission[0]?.port ?? 0
  const lines: string[] = []
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').setEncoding('latin1'))
  await Promise.all(
    sockets.map(async socket => {
      socket.on('error', () => {})
      const [line] = (await once(socket, 'data')) as [string]
      lines.push(line)
    }),
  )
  return { sockets, lines }
}

t.test('a thousand idle connections keep nobody from sending, and are sent away in time', async t => {
  const test = await openSubmissionTest(t, { toml: '[submission]\nsessions_per_address = 1500' })
  const { sockets, lines } = await idle(test, 1_000)
  t.teardown(() => sockets.forEach(socket => socket.destroy()))
  t.equal(lines.filter(line => line.startsWith('220 ')).length, 1_000)
  const client = await test.loggedIn()
  const [id = ''] = idsOf(await client.submit(letter()))
  t.match(await test.caught(id), { recipient: 'ann@one.test' })
  const partings = Promise.all(sockets.map(socket => once(socket, 'data')))
  await test.postroad.clock.advance(301_000)
  for (const [line] of (await partings) as [string][])
    if (!/^421 4\.(4\.2|3\.2) /.test(line)) t.fail(`said at the end: ${line}`)
})

t.test('an address that has used its share of sessions is refused', async t => {
  const test = await openSubmissionTest(t, {
    toml: '[submission]\nsessions_per_address = 3\nsessions = 5',
  })
  const { sockets, lines } = await idle(test, 4)
  t.teardown(() => sockets.forEach(socket => socket.destroy()))
  t.equal(lines.filter(line => line.startsWith('220 ')).length, 3)
  t.equal(lines.filter(line => line.startsWith('421 4.7.0 ')).length, 1)
  const neighbour = await test.open('STARTTLS', '127.0.0.2')
  t.match(await neighbour.login(test.postroad.key), /^235 /)
  await test.open('clear', '127.0.0.3')
  for (const address of ['127.0.0.4', '127.0.0.5']) await test.open('clear', address)
  await t.rejects(
    test.open('clear', '127.0.0.6'),
    /421 4\.3\.2 Too many connections/,
    'no address has more than one any more',
  )
})
