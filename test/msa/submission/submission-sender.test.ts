/** Sender and recipients of relayed mail: From rules, envelope, recipients and their results. */
import t from 'tap'
import { dkimVerdicts, dkimZone } from '../../support/dkim.js'
import { idsOf, letter, openSubmissionTest } from '../../support/smtp/submission.js'

/** One for most tests; sender.test is verified in it, the reserved domains of others are not known to it. */
const office = openSubmissionTest(t).then(async test => ({ ...test, zone: dkimZone(await test.addDomain()) }))

/** How many rows have come to each table since. */
function grown(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(after).map(([table, rows]) => [table, rows - (before[table] ?? 0)]),
  )
}

t.test('a verified domain sends as itself, signed, from a return path of our own', async t => {
  const { loggedIn, caught, zone } = await office
  const client = await loggedIn()
  const [id = ''] = idsOf(await client.submit(letter('From: "Müller & Co" <App@Sender.TEST>')))
  const { header, envelopeSender, raw } = await caught(id)
  t.match(header, /^From: =\?utf-8\?.*<App@Sender\.TEST>\r$/im)
  t.notMatch(header, /^Reply-To:/m)
  t.match(envelopeSender, /^r1-1-[a-z2-7]+-[a-z2-7]+@/)
  t.match(await dkimVerdicts(raw, zone), ['sender.test rsa-sha256 pass'])
})

t.test('for a domain not added here the shared address sends, and the author becomes Reply-To', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const [id = ''] = idsOf(
    await client.submit(letter('From: Ann <ann@elsewhere.test>', 'Sender: list@elsewhere.test')),
  )
  const { header } = await caught(id)
  t.match(header, /^From: Ann <notify@mail\.postroad\.test>\r$/m)
  t.match(header, /^Reply-To: Ann <ann@elsewhere\.test>\r$/m)
  t.notMatch(header, /^Sender:/m)
  const [second = ''] = idsOf(
    await client.submit(letter('From: ann@elsewhere.test', 'Reply-To: Help <help@elsewhere.test>')),
  )
  t.match((await caught(second)).header, /^Reply-To: Help <help@elsewhere\.test>\r$/m)
})

t.test('a domain that is not verified yet sends nothing', async t => {
  const { postroad, loggedIn } = await office
  await postroad.json('domain', 'add', 'new.test', '--workspace', postroad.workspaceId)
  const before = postroad.rowCounts()
  const client = await loggedIn()
  t.match(await client.submit(letter('From: me@new.test')), /^550 5\.7\.1 new\.test is not verified yet/)
  t.match(grown(before, postroad.rowCounts()), { messages: 0 })
})

t.test('the domain of another workspace is not to be sent from', async t => {
  const { postroad, loggedIn, caught } = await office
  const { id: other } = await postroad.json<{ id: string }>('workspace', 'create', 'other')
  const client = await loggedIn(await postroad.makeKey('--workspace', other))
  const [id = ''] = idsOf(await client.submit(letter()))
  t.match((await caught(id)).header, /^From: App <notify@mail\.postroad\.test>\r$/m)
})

t.test('without a shared address only verified domains send', async t => {
  const { loggedIn } = await openSubmissionTest(t, { env: { POSTROAD_MTA_SHARED_ADDRESS: '' } })
  const client = await loggedIn()
  t.match(await client.submit(letter()), /^550 5\.7\.1 sender\.test is not a verified domain/)
})

t.test('several authors need a Sender, who vouches for none of them', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const from = 'From: Ann <ann@elsewhere.test>, bob@elsewhere.test'
  t.match(await client.submit(letter(from)), /^550 5\.6\.0 .*requires a Sender/)
  for (const field of [
    from,
    'From: App <app@sender.test>, bob@elsewhere.test',
    'From: x: ann@elsewhere.test, app@sender.test;',
  ]) {
    const [id = ''] = idsOf(await client.submit(letter(field, 'Sender: app@sender.test')))
    const { header } = await caught(id)
    t.match(header, /^From: (?:(?:Ann|App) <)?notify@mail\.postroad\.test>?\r$/m, field)
    t.match(header, /^Reply-To: .*@elsewhere\.test/m)
    t.notMatch(header, /^Sender:/m)
    t.notMatch(header, /d=sender\.test/)
  }
})

t.test('several authors at verified domains stay as they are, signed by one that is shown', async t => {
  const { loggedIn, caught, zone } = await office
  const client = await loggedIn()
  const from = 'From: Ann <ann@sender.test>, Bob <bob@Sender.test>'
  const [id = ''] = idsOf(await client.submit(letter(from, 'Sender: app@sender.test')))
  const { header, raw } = await caught(id)
  t.match(header, `${from}\r\n`)
  t.match(header, /^Sender: app@sender\.test\r$/m)
  t.match(await dkimVerdicts(raw, zone), ['sender.test rsa-sha256 pass'])
})

t.test('Sender is never an address of another party', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const [id = ''] = idsOf(await client.submit(letter('From: app@sender.test', 'Sender: ceo@bank.test')))
  const { header } = await caught(id)
  t.match(header, /^From: app@sender\.test\r$/m)
  t.notMatch(header, /bank\.test/)
  const two = letter('From: Ann <ann@sender.test>, bob@sender.test', 'Sender: ceo@bank.test')
  const [second = ''] = idsOf(await client.submit(two))
  t.match((await caught(second)).header, /^Sender: Ann <ann@sender\.test>\r$/m)
})

t.test('the shared address as Sender makes no other address ours', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const forged = letter('From: ceo@bank.test', 'Sender: notify@mail.postroad.test')
  const [id = ''] = idsOf(await client.submit(forged))
  t.match((await caught(id)).header, /^From: notify@mail\.postroad\.test\r$/m)
})

t.test('each recipient is a separate message, with id, return path, status, trace and events', async t => {
  const { postroad, loggedIn, caught } = await office
  const before = postroad.rowCounts()
  const client = await loggedIn()
  const to = ['ann@one.test', 'bob@two.test', 'cem@one.test']
  const ids = idsOf(await client.submit(letter('X-Postroad-Tag: news'), { to }))
  t.equal(new Set(ids).size, 3)
  const senders = new Set<string>()
  for (const [index, id] of ids.entries()) {
    const mail = await caught(id)
    t.equal(mail.recipient, to[index])
    senders.add(mail.envelopeSender)
    const { body } = await postroad.get(`/api/v1/email/${id}`, { key: postroad.key })
    t.match(body.data, {
      to: to[index],
      status: 'delivered',
      subject: 'Hello',
      from: 'App <app@sender.test>',
      trace: [{ attempt: 1, outcome: 'delivered' }],
    })
  }
  t.equal(senders.size, 3)
  // The message itself is stored once; each recipient has its own accepted, sent and delivered events.
  t.match(grown(before, postroad.rowCounts()), { message_contents: 1, messages: 3, events: 9 })
})

t.test('a suppressed recipient is accepted and recorded, and gets nothing', async t => {
  const { postroad, loggedIn, caught } = await office
  await postroad.run('suppress', 'add', '--workspace', postroad.workspaceId, 'Bob@three.test')
  const before = postroad.rowCounts()
  const client = await loggedIn()
  const [ann = '', bob = ''] = idsOf(
    await client.submit(letter(), { to: ['ann@one.test', 'bob@three.test'] }),
  )
  await caught(ann)
  const { body } = await postroad.get(`/api/v1/email/${bob}/status`, { key: postroad.key })
  t.match(body.data, { status: 'suppressed', reason: 'suppressed', attempts: 0 })
  t.match(grown(before, postroad.rowCounts()), { captured_mails: 1 })
  t.match(await client.submit(letter(), { to: 'bob@three.test' }), /^250 /, 'also when there is nobody else')
})

t.test('a recipient that is named twice gets one mail', async t => {
  const { postroad, loggedIn, caught } = await office
  const before = postroad.rowCounts()
  const client = await loggedIn()
  const to = ['ann@one.test', 'ann@ONE.test']
  const [first = '', second = ''] = idsOf(await client.submit(letter(), { to }))
  await caught(first)
  const { body } = await postroad.get(`/api/v1/email/${second}/status`, { key: postroad.key })
  t.match(body.data, { status: 'failed', reason: 'duplicate' })
  t.match(grown(before, postroad.rowCounts()), { captured_mails: 1 })
})

t.test('an address that cannot be mailed is refused at once, and the others stay', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  t.match(await client.say('MAIL FROM:<>'), /^250 /)
  t.match(await client.say('RCPT TO:<ann@one.test>'), /^250 /)
  for (const address of ['postmaster', 'bob@localhost', 'bob@[127.0.0.1]', 'bob@-x.test'])
    t.match(await client.say(`RCPT TO:<${address}>`), /^(501 5\.1\.3|553 5\.1\.3) /, address)
  t.match(await client.say('DATA'), /^354 /)
  const ids = idsOf(await client.say(`${letter()}.`))
  t.equal(ids.length, 1)
  t.match(await caught(ids[0] ?? ''), { recipient: 'ann@one.test' })
})

t.test('an international recipient is mailed at the A-labels of the domain', async t => {
  const { loggedIn, caught } = await office
  const client = await loggedIn()
  const [id = ''] = idsOf(await client.submit(letter(), { to: 'ann@müller.test', mail: 'SMTPUTF8' }))
  t.match(await caught(id), { recipient: 'ann@xn--mller-kva.test' })
})

// proves: decisions: Added after a day's work > Undeclared 8-bit header text by
t.test(
  'an author that is not ASCII before the @ is refused, as by the API, and nothing is stored',
  async t => {
    const { postroad, loggedIn, addDomain } = await openSubmissionTest(t)
    await addDomain()
    const before = postroad.rowCounts()['messages']
    const client = await loggedIn()
    for (const [field, author] of [
      ['From', 'From: ä@sender.test'],
      ['From', 'From: Jörg <jörg@sender.test>'],
      ['From', 'From: "ä"@sender.test'],
      ['From', 'From: app@sender.test, ä@sender.test\r\nSender: app@sender.test'],
      ['Sender', 'From: app@sender.test\r\nSender: ä@sender.test'],
      ['Reply-To', 'From: app@sender.test\r\nReply-To: Desk <ä@sender.test>'],
    ] as const)
      for (const charset of ['utf8', 'latin1'] as const)
        for (const mail of ['', 'SMTPUTF8'])
          t.match(
            await client.submit(Buffer.from(letter(author), charset), { mail }),
            new RegExp(`^550 5\\.6\\.0 .*the ${field} field has an address that is not ASCII before the @`),
            `${author} in ${charset} ${mail}`,
          )
    t.match(await client.submit(letter(), { from: 'ä@sender.test', mail: 'SMTPUTF8' }), /^553 5\.6\.7 /)
    t.equal(postroad.rowCounts()['messages'], before)
    t.match(
      await client.submit(letter('From: app@sänder.test')),
      /^[25]50 (?!5\.6\.0)/,
      'a domain is not a local part',
    )
  },
)
