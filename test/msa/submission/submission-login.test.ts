/** Who may hand in mail by SMTP: logins, permissions, limits, the lock on guessers, and networks that need no login. */
import t from 'tap'
import { initialise } from '../../support/program/process.js'
import { SmtpClient } from '../../support/smtp/smtp-service.js'
import { idsOf, letter, openSubmissionTest } from '../../support/smtp/submission.js'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const MINUTE_MS = 60_000

t.test('mail is taken on both ports, with both ways to log in, by key name or workspace', async t => {
  const { postroad, open, caught } = await openSubmissionTest(t)
  for (const door of ['implicit TLS', 'STARTTLS'] as const)
    for (const username of ['apikey', 'APIKEY', postroad.workspaceId]) {
      const client = await open(door)
      t.match(await client.login(postroad.key, username), /^235 2\.7\.0 /)
      const [id = ''] = idsOf(await client.submit(letter()))
      t.match(await caught(id), { recipient: 'ann@one.test' })
    }
  const client = await open()
  t.match(await client.say('AUTH LOGIN'), '334 ')
  t.match(await client.say(base64('apikey')), '334 ')
  t.match(await client.say(base64(postroad.key)), /^235 2\.7\.0 /)
  t.match(await client.submit(letter()), /^250 2\.0\.0 Accepted as /)
})

t.test('without TLS nobody logs in, unless the configuration says so', async t => {
  const { postroad, open } = await openSubmissionTest(t)
  const strict = await open('clear')
  t.match(await strict.login(postroad.key), /^538 5\.7\.11 /)
  t.match(await strict.begin(), /^530 5\.7\.0 /)

  const lan = await openSubmissionTest(t, { toml: '[submission]\nrequire_tls = false' })
  const client = await lan.open('clear')
  t.match(await client.login(lan.postroad.key), /^235 /)
  t.match(await client.submit(letter()), /^250 /)
})

t.test('who is not who they say is refused, and nothing is kept', async t => {
  const { postroad, open } = await openSubmissionTest(t)
  const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const { id, key: revoked } = await postroad.json<{ id: string; key: string }>(
    ...['key', 'create', '--workspace', postroad.workspaceId, '--name', 'old'],
  )
  await postroad.run('key', 'revoke', id)
  const client = await open()
  t.match(await client.begin(), /^530 5\.7\.0 Authentication required/)
  await client.say('RSET')
  for (const [key, username] of [
    [`${postroad.key}x`, 'apikey'],
    ['', 'apikey'],
    [postroad.key, 'ann'],
    [postroad.key, other],
    [revoked, 'apikey'],
  ] as const)
    t.match(await client.login(key, username), /^535 5\.7\.8 /, `${username} with ${key.length} characters`)
  t.match(await client.begin(), /^530 /)
  t.equal(postroad.rowCounts()['messages'], 0)
  t.notMatch(JSON.stringify(postroad.log.lines), postroad.key.slice(8))
})

t.test('a key needs the permission smtp:send', async t => {
  const { postroad, open } = await openSubmissionTest(t)
  const reader = await open()
  t.match(await reader.login(await postroad.makeKey('--permissions', 'email:send,email:read')), /^235 /)
  t.match(await reader.begin(), /^550 5\.7\.1 .*smtp:send/)
  const sender = await open()
  t.match(await sender.login(await postroad.makeKey('--permissions', 'smtp:send')), /^235 /)
  t.match(await sender.submit(letter()), /^250 /)
})

t.test('a key that is revoked in the middle of a session sends no more', async t => {
  const { postroad, open } = await openSubmissionTest(t)
  const { id, key } = await postroad.json<{ id: string; key: string }>(
    ...['key', 'create', '--workspace', postroad.workspaceId, '--name', 'short-lived'],
  )
  const client = await open()
  await client.login(key)
  t.match(await client.submit(letter()), /^250 /)
  await postroad.run('key', 'revoke', id)
  t.match(await client.submit(letter()), /^535 5\.7\.8 /)
})

t.test('a sandbox key is answered as any other, and nothing leaves', async t => {
  const { postroad, loggedIn } = await openSubmissionTest(t)
  const key = await postroad.makeKey('--sandbox')
  const client = await loggedIn(key)
  const [id = ''] = idsOf(await client.submit(letter()))
  const { body } = await postroad.get(`/api/v1/email/${id}`, { key })
  t.match(body.data, { status: 'sent', is_sandbox: true, subject: 'Hello', trace: [] })
  t.same(await postroad.json('queue', 'list'), [])
})

t.test('the mails per minute of a key are counted by recipient', async t => {
  const { postroad, loggedIn } = await openSubmissionTest(t)
  const client = await loggedIn(await postroad.makeKey('--email-rate-limit', '3'))
  t.match(await client.submit(letter(), { to: ['a@one.test', 'b@one.test'] }), /^250 /)
  t.match(
    await client.submit(letter(), { to: ['c@one.test', 'd@one.test'] }),
    /^451 4\.7\.1 .*3 mails per minute/,
  )
  t.match(await client.submit(letter(), { to: 'c@one.test' }), /^250 /, 'what was refused used nothing up')
  await postroad.clock.advance(MINUTE_MS)
  t.match(await client.submit(letter(), { to: ['c@one.test', 'd@one.test'] }), /^250 /)
})

t.test('recipients that a key could never mail together are put off one by one', async t => {
  const { postroad, loggedIn, caught } = await openSubmissionTest(t)
  const client = await loggedIn(await postroad.makeKey('--email-rate-limit', '2'))
  await client.say('MAIL FROM:<app@sender.test>')
  for (const name of ['a', 'b']) t.match(await client.say(`RCPT TO:<${name}@one.test>`), /^250 /)
  t.match(await client.say('RCPT TO:<c@one.test>'), /^452 4\.5\.3 .*2 mails per minute/)
  t.match(await client.say('DATA'), /^354 /)
  const ids = idsOf(await client.say(`${letter()}.`))
  t.equal(ids.length, 2, 'the others are taken')
  t.match(await caught(ids[1] ?? ''), { recipient: 'b@one.test' })
})

t.test('a message has at most as many recipients as the configuration says', async t => {
  const { loggedIn } = await openSubmissionTest(t, { toml: '[submission]\nmax_recipients = 100' })
  const client = await loggedIn()
  const recipients = Array.from({ length: 101 }, (_, index) => `user${index}@one.test`)
  t.match(await client.begin({ to: recipients }), /^452 4\.5\.3 /)
  t.match(await client.say('DATA'), /^354 /)
  const reply = await client.say(`${letter()}.`)
  t.match(reply, /^250 2\.0\.0 Accepted as .* and 88 more$/)
  t.equal(idsOf(reply).length, 12)
})

t.test("the workspace's hourly and daily limits are temporary errors", async t => {
  const { postroad, loggedIn } = await openSubmissionTest(t)
  const set = async (...settings: string[]) => {
    await postroad.run('workspace', 'set', postroad.workspaceId, ...settings)
    // Settings are remembered for a second.
    await postroad.clock.advance(2_000)
  }
  await set('hourly_limit=1')
  const client = await loggedIn()
  t.match(await client.submit(letter()), /^250 /)
  t.match(await client.submit(letter()), /^451 4\.7\.1 .*1 mails per hour/)
  await postroad.clock.advance(60 * MINUTE_MS)
  const later = await loggedIn()
  t.match(await later.submit(letter()), /^250 /)
  await set('hourly_limit=0', 'daily_limit=2')
  t.match(await later.submit(letter()), /^451 4\.7\.1 .*2 mails per day/)
})

/** Wrong, with the first characters of a right key: a guess at that one. */
const guessAt = (key: string, guess: number) => key.slice(0, 14) + String(guess).repeat(34).slice(0, 34)
/** A guess at some other key: all begin differently. */
const otherGuess = (guess: number) => `ts_live_${String(guess).padStart(6, '0')}${'x'.repeat(34)}`

t.test('a key that is guessed at is locked out at that address for a while, and nowhere else', async t => {
  const { postroad, open } = await openSubmissionTest(t, {
    toml: '[submission]\nlogin_failures = 3\nlogin_lockout = "10m"',
  })
  const guesser = await open()
  for (let guess = 0; guess < 3; guess++)
    t.match(await guesser.login(guessAt(postroad.key, guess)), /^535 5\.7\.8 /)
  t.match(await guesser.login(postroad.key), /^454 4\.7\.0 .*10 min/)
  const another = await open()
  t.match(await another.login(postroad.key), /^454 4\.7\.0 /, 'a new connection changes nothing')
  for (const step of [3_600_000, -7_200_000]) {
    postroad.clock.jump(step)
    t.match(await another.login(postroad.key), /^454 4\.7\.0 .*10 min/, 'nor does setting the clock')
  }
  const neighbour = await open('implicit TLS', '127.0.0.2')
  t.match(await neighbour.login(postroad.key), /^235 /)
  t.equal(postroad.log.lines.filter(({ event }) => event === 'submission login locked').length, 1)
  await postroad.clock.advance(10 * MINUTE_MS)
  const returned = await open()
  t.match(await returned.login(postroad.key), /^235 /)
})

t.test('a key logs in for the first time from an address with 1,000 failed logins of others', async t => {
  const { postroad, open } = await openSubmissionTest(t)
  const replies = new Map<string, number>()
  let attacker = await open()
  for (let guess = 0; guess < 1_000; guess++) {
    let reply = await attacker.login(otherGuess(guess))
    if (!/^(535|454) /.test(reply)) {
      attacker = await open()
      reply = await attacker.login(otherGuess(guess))
    }
    replies.set(reply.slice(0, 3), (replies.get(reply.slice(0, 3)) ?? 0) + 1)
  }
  t.same(Object.fromEntries(replies), { '535': 10, '454': 990 })
  const colleague = await open()
  t.match(await colleague.login(postroad.key), /^235 /)
  t.match(await colleague.submit(letter()), /^250 /)
})

t.test('guesses at one key are limited over all addresses, except where it has logged in before', async t => {
  const { postroad, open } = await openSubmissionTest(t, { toml: '[submission]\nlogin_failures = 1' })
  const office = await open('implicit TLS', '127.0.1.1')
  t.match(await office.login(postroad.key), /^235 /)
  for (let host = 1; host <= 10; host++) {
    const guesser = await open('implicit TLS', `127.0.2.${host}`)
    t.match(await guesser.login(guessAt(postroad.key, host)), /^535 /)
  }
  const eleventh = await open('implicit TLS', '127.0.2.11')
  t.match(await eleventh.login(guessAt(postroad.key, 11)), /^454 /)
  t.match(await eleventh.login(postroad.key), /^454 /, 'not even checked')
  const again = await open('implicit TLS', '127.0.1.1')
  t.match(await again.login(postroad.key), /^235 /)
  const lockouts = postroad.log.lines.filter(({ event }) => event === 'submission login locked')
  t.equal(lockouts.filter(({ fields }) => fields['where'] === 'everywhere').length, 1)
})

t.test('a key that has logged in from an address works there even while it is guessed at', async t => {
  const { postroad, open } = await openSubmissionTest(t, {
    toml: '[submission]\nlogin_failures = 3\nlogin_lockout = "10m"',
  })
  const office = await open()
  t.match(await office.login(postroad.key), /^235 /)
  for (let round = 0; round < 2; round += 1) {
    const guesser = await open()
    for (let guess = 0; guess < 3; guess++)
      t.match(await guesser.login(guessAt(postroad.key, guess)), round === 0 ? /^535 / : /^454 /)
    const again = await open()
    t.match(await again.login(postroad.key), /^235 /)
  }
})

t.test('a right login forgives what was mistyped before', async t => {
  const { postroad, open } = await openSubmissionTest(t, { toml: '[submission]\nlogin_failures = 2' })
  for (let day = 0; day < 3; day++) {
    const client = await open()
    t.match(await client.login(guessAt(postroad.key, day)), /^535 /)
    t.match(await client.login(postroad.key), /^235 /)
  }
})

t.test('a trusted network sends without a login, with the rights of its key', async t => {
  // All installations of this file are copies of one, so that its keys are known before the server starts.
  const copy = await initialise(t)
  const [key] = await copy.json<{ id: string }[]>('key', 'list', '--workspace', copy.workspaceId)
  const networks = [
    ['127.0.0.2', key?.id],
    ['127.0.0.3/32', '00000000-0000-7000-8000-000000000000'],
  ]
  const { postroad, open, caught } = await openSubmissionTest(t, {
    toml: networks
      .map(
        ([network, id]) =>
          `[[submission.trusted_networks]]\nnetwork = "${network ?? ''}"\nkey = "${id ?? ''}"`,
      )
      .join('\n'),
  })
  const printer = await open('clear', '127.0.0.2')
  const [id = ''] = idsOf(await printer.submit(letter(), { from: 'printer@sender.test' }))
  const { header } = await caught(id)
  t.match(
    header,
    /^Received: from client\.example \(\[127\.0\.0\.2\]\)\r\n by mx\.postroad\.test with ESMTP id /m,
  )

  const application = await open('STARTTLS', '127.0.0.2')
  const sandboxKey = await postroad.makeKey('--sandbox')
  t.match(await application.login(sandboxKey), /^235 /, 'who can log in may')
  const [sandboxed = ''] = idsOf(await application.submit(letter()))
  const { body } = await postroad.get(`/api/v1/email/${sandboxed}`, { key: sandboxKey })
  t.match(body.data, { is_sandbox: true })

  const stranger = await open('clear')
  t.match(await stranger.begin(), /^530 /)
  const orphan = await open('clear', '127.0.0.3')
  t.match(await orphan.begin(), /^530 /, 'its key does not exist')
  t.ok(postroad.log.lines.some(({ event }) => event === 'trusted network key rejected'))

  await postroad.run('key', 'revoke', key?.id ?? '')
  await postroad.clock.advance(2_000)
  t.match(await printer.submit(letter()), /^535 5\.7\.8 /)
})

t.test(
  'a scanner that relays on port 25 has the size limit of 587, everybody else that of port 25',
  async t => {
    const copy = await initialise(t)
    const [key] = await copy.json<{ id: string }[]>('key', 'list', '--workspace', copy.workspaceId)
    const { postroad } = await openSubmissionTest(t, {
      toml:
        '[limits]\nmessage_size = "1MB"\n[inbound]\nrelay_trusted = true\ngreeting_delay = "0"\nmessage_size = "64KB"\n' +
        `[[submission.trusted_networks]]\nnetwork = "127.0.0.2"\nkey = "${key?.id ?? ''}"`,
    })
    const offered = async (localAddress: string) => {
      const client = await SmtpClient.connect(postroad.addresses.inbound[0]?.port ?? 0, false, localAddress)
      t.teardown(() => client.cut())
      await client.readReply()
      return { client, size: /SIZE (\d+)/.exec((await client.ehlo()).join(' '))?.[1] }
    }
    t.equal((await offered('127.0.0.3')).size, '65536')
    const { client: scanner, size } = await offered('127.0.0.2')
    t.equal(size, '1048576')
    for (const line of ['MAIL FROM:<scan@sender.test> SIZE=300000', 'RCPT TO:<ann@one.test>', 'DATA']) {
      scanner.send(`${line}\r\n`)
      t.match((await scanner.readReply()).join(' '), /^(250|354) /)
    }
    scanner.send(`${letter()}${`${'x'.repeat(70)}\r\n`.repeat(4_000)}.\r\n`)
    t.match((await scanner.readReply()).join(' '), /^250 2\.0\.0 Accepted/)
  },
)

t.test('a domain or limit that is changed meanwhile counts for the next message of a session', async t => {
  const { postroad, loggedIn, addDomain } = await openSubmissionTest(t)
  const { id } = (await addDomain()) as unknown as { id: string }
  const client = await loggedIn()
  const { key } = postroad
  const senderOf = async (reply: string) =>
    (await postroad.get(`/api/v1/email/${idsOf(reply)[0] ?? ''}`, { key })).body.data.from as string
  // The clock of these tests stands still: nothing is forgotten by its age.
  t.match(await senderOf(await client.submit(letter())), /sender\.test/)
  t.match(await postroad.delete(`/api/v1/domains/${id}`, { key }), { status: 200 })
  t.match(await senderOf(await client.submit(letter())), /notify@mail\.postroad\.test/, 'by the API')
  await addDomain()
  t.match(await senderOf(await client.submit(letter())), /sender\.test/, 'by a command')
  await postroad.run('workspace', 'set', postroad.workspaceId, 'hourly_limit=1')
  t.match(await client.submit(letter()), /^451 4\.7\.1 /)
})
